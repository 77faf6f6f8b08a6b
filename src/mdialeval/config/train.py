"""The ``train`` section."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from mdialeval.config.corpus import Source
from mdialeval.config.section import LanguageCode, Section


class DimensionConfig(Section):
    """One evaluator: what it learns, and which translations it learns from."""

    task: str = Field("", description="an entry of `mdialeval list tasks`; the dimension's name where empty")
    options: dict[str, Any] = Field(default_factory=dict, description="the task's own options")
    top_k: float | None = Field(None, gt=0, le=100, description="per cent by QE; rank.k where not given")


class TrainConfig(Section):
    """The evaluators, their encoder and the training loop."""

    dimensions: dict[str, DimensionConfig] = Field(
        default_factory=lambda: {
            "understandability": DimensionConfig(top_k=5.0),
            "sensibleness": DimensionConfig(top_k=75.0),
        },
        description="dimension -> its recipe",
    )
    data: list[Source] = Field(
        default_factory=list, description="more training data, as it is (already labelled or not)"
    )
    languages: list[LanguageCode] = Field(default_factory=list, description="train on these; all where empty")
    encoder: str = Field("embedded", description="'embedded', a hub name or a local folder")
    batch_size: int = Field(16, ge=1)
    learning_rate: float = Field(5e-5, gt=0)
    epochs: float = Field(1.0, gt=0)
    max_pairs: int | None = Field(None, ge=2, description="at most this many training pairs a dimension")
    dev_share: float = Field(0.1, gt=0, lt=0.5, description="share of the dialogue groups held out for selection")
    max_tokens: int = Field(96, ge=8, description="length limit; oldest turns are dropped first, the response never")
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    device: str = "auto"
