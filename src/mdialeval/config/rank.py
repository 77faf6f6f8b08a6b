"""The ``rank`` section."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from mdialeval.config.section import Section


class RankConfig(Section):
    """Which estimator, how much is kept, and what is ranked."""

    estimator: str = Field("embedded", description="an entry of `mdialeval list estimators`")
    options: dict[str, Any] = Field(default_factory=dict, description="the estimator's own options")
    k: float = Field(50.0, gt=0, le=100, description="per cent of each language that is kept")
    key: Literal["response", "context+response", "min"] = Field(
        "response", description="what is ranked: the turn alone (as published), or with the turns before it"
    )
    context_turns: int = Field(4, ge=1, description="how many turns before it count, for the other two keys")
    ties: Literal["stable", "keep-all"] = "stable"
    on_long: Literal["truncate", "window", "skip", "error"] = "truncate"
    batch_size: int = Field(64, ge=1)
    device: str = "auto"
