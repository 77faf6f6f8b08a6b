"""The ``score`` section."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from mdialeval.config.corpus import Source
from mdialeval.config.section import Section


class ScorerConfig(Section):
    """One scorer: an entry of `mdialeval list scorers` with its options."""

    name: str = Field("", description="what reports call it; the scorer's name where empty")
    scorer: str
    options: dict[str, Any] = Field(default_factory=dict)
    sets: list[str] = Field(
        default_factory=list,
        description="names of the data sets that it scores, for a slow or paid one; all where empty",
    )


class FuseConfig(Section):
    """Several scorers as one: weights fitted on a part of each rated set, the rest is what the score is checked on."""

    name: str = Field("fused", description="what reports call it")
    members: list[str] = Field(default_factory=list, description="names of the scorers to join; all where empty")
    dev_share: float = Field(0.5, gt=0, lt=1, description="share of the dialogues that the weights are fitted on")
    may_be_negative: list[str] = Field(
        default_factory=list, description="members of which a lower score may be better, such as a loss"
    )


class AverageConfig(Section):
    """Several scorers as one: the mean of their ranks, by language; nothing is fitted."""

    name: str = Field(description="what reports call it")
    members: list[str] = Field(
        min_length=2,
        description="scorers that measure the same dimension; `evaluator` is what was trained, in a benchmark the "
        "strategies have their names",
    )
    by: Literal["ranks", "scores"] = Field(
        "ranks", description="mean of ranks, or of standard scores, in which scores at both ends count most"
    )


class ScoreConfig(Section):
    """What is scored, and by whom."""

    sets: list[Source] = Field(default_factory=list, description="rated data sets")
    scorers: list[ScorerConfig] = Field(
        default_factory=list, description="scorers beside the evaluators that `train` made"
    )
    average: list[AverageConfig] = Field(
        default_factory=list, description="mean scores of several of the scorers, on whole data sets"
    )
    fuse: list[FuseConfig] = Field(default_factory=list, description="weighted scores out of the scorers above")
    retry: Literal["nothing", "failed", "unscored"] = Field(
        "failed", description="rows of a judge that a later run asks again; unscored adds refusals and empty replies"
    )
    batch_size: int = Field(32, ge=1)
    device: str = "auto"
