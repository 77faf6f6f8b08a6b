"""The ``rank`` section."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from mdialeval.config.section import Section

Percentage = Annotated[float, Field(gt=0, le=100)]


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


class RankConfig(Section):
    """Which estimator, how much is kept, and what is ranked."""

    estimator: str = Field("embedded", description="an entry of `mdialeval list estimators`")
    options: dict[str, Any] = Field(default_factory=dict, description="the estimator's own options")
    k: Annotated[tuple[Percentage, ...], BeforeValidator(_as_tuple), Field(min_length=1)] = Field(
        (50.0,), description="per cent of each language that is kept, one or several: the first decides what is kept"
    )
    key: Literal["response", "context+response", "min"] = Field(
        "response", description="what is ranked: the turn alone (as published), or with the turns before it"
    )
    context_turns: int = Field(4, ge=1, description="how many turns before it count, for the other two keys")
    ties: Literal["stable", "keep-all"] = Field("stable", description="equal scores: by input order, or all kept")
    leave_out: list[str] | None = Field(
        None,
        description="flags whose rows do not enter the ranking; those that translate.on_flag drops where not given",
    )
    on_long: Literal["truncate", "window", "skip", "error"] = Field(
        "truncate", description="pairs longer than the estimator's window"
    )
    batch_size: int = Field(64, ge=1)
    device: str = "auto"
