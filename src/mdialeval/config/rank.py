"""The ``rank`` section."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from mdialeval.config.section import Section

COMBINED = "combined"
"""The name that stands for several estimators; see ``RankConfig.parts``."""

Percentage = Annotated[float, Field(gt=0, le=100)]


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


class PartConfig(Section):
    """One estimator of a combined signal."""

    estimator: str = Field(description="an entry of `mdialeval list estimators`")
    weight: float = Field(
        1.0, gt=0, allow_inf_nan=False, description="of its z-scores, which are turned so that higher is better"
    )
    options: dict[str, Any] = Field(default_factory=dict, description="the estimator's own options")
    name: str = Field("", description="in the funnel; the estimator's name where empty")

    @property
    def title(self) -> str:
        """What the part is called in counts and messages."""
        return self.name or self.estimator


class RankConfig(Section):
    """Which estimator, how much is kept, and what is ranked."""

    estimator: str = Field(
        "embedded", description="an entry of `mdialeval list estimators`, or 'combined' for the weighted `parts`"
    )
    options: dict[str, Any] = Field(default_factory=dict, description="the estimator's own options")
    parts: tuple[PartConfig, ...] = Field(
        (),
        description="estimators of 'combined': each with its estimator, weight and options; the key is the weighted "
        "mean of their z-scores inside each language",
    )
    k: Annotated[tuple[Percentage, ...], BeforeValidator(_as_tuple), Field(min_length=1)] = Field(
        (50.0,), description="per cent of each language that is kept, one or several: the first decides what is kept"
    )
    key: Literal["response", "context+response", "min"] = Field(
        "response", description="what is ranked: the turn alone (as published), or with the turns before it"
    )
    context_turns: int = Field(4, ge=1, description="how many turns before it count, for the other two keys")
    ties: Literal["stable", "keep-all"] = Field("stable", description="equal scores: by input order, or all kept")
    strata: int = Field(
        1,
        ge=1,
        le=100,
        description="bins of equal size by source length, each of which keeps its own best k per cent, as estimators "
        "favour short turns; 1 = no bins",
    )
    leave_out: list[str] | None = Field(
        None,
        description="flags whose rows do not enter the ranking; those that translate.on_flag drops where not given",
    )
    on_long: Literal["truncate", "window", "skip", "error"] = Field(
        "truncate", description="pairs longer than the estimator's window"
    )
    batch_size: int = Field(64, ge=1)
    device: str = "auto"

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.estimator != COMBINED:
            if self.parts:
                raise ValueError(f"parts are those of estimator: {COMBINED}, not of {self.estimator!r}")
            return self
        if not self.parts:
            example = "[{estimator: embedded, weight: 1}, {estimator: cosine, weight: 0.5}]"
            raise ValueError(f"estimator: {COMBINED} needs parts, such as {example}")
        if self.options:
            raise ValueError(f"options belong to each of the parts where estimator is {COMBINED}")
        twice = [title for title, n in Counter(part.title for part in self.parts).items() if n > 1]
        if twice:
            raise ValueError(f"two parts are called {twice[0]!r}: give each its own name")
        return self

    def members(self) -> tuple[PartConfig, ...]:
        """The estimators to ask: the parts, or the one estimator."""
        return self.parts or (PartConfig(estimator=self.estimator, options=self.options),)
