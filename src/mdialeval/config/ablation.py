"""The ``ablation`` section."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from mdialeval.config.section import Section


class AblationConfig(Section):
    """Variants of the graph branch that are compared, and how often each is repeated."""

    variants: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="name -> changes to train.graph, such as {use: joint, fusion: gate}"
    )
    baseline: str = Field("text only", description="the variant that the others are tested against")
    seeds: list[Annotated[int, Field(ge=0)]] = Field([1, 2, 3], min_length=1, description="mean and spread over these")
    statistic: Literal["pearson", "spearman", "kendall_tau_b"] = Field("spearman", description="on rated sets")

    @model_validator(mode="after")
    def _has_baseline(self) -> Self:
        if self.variants and self.baseline not in self.variants:
            raise ValueError(f"baseline {self.baseline!r} is none of the variants ({', '.join(self.variants)})")
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError("seeds: a seed occurs twice")
        return self
