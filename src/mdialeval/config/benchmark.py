"""The ``benchmark`` section."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mdialeval.config.section import LanguageCode, Section

Strategy = Literal["english", "translate-train", "multilingual", "top-k", "translate-test"]
Percentage = Annotated[float, Field(gt=0, le=100)]


class BenchmarkConfig(Section):
    """Which ways of using translated data are compared, and how often each is repeated."""

    strategies: list[Strategy] = Field(
        ["english", "multilingual", "top-k"],
        min_length=1,
        description="english = zero-shot transfer; translate-train = one evaluator a language; multilingual = English "
        "and all translations; top-k = multilingual on the best k per cent; translate-test = responses into English",
    )
    k: list[Percentage] = Field([5.0, 10.0, 20.0, 50.0, 75.0], description="of the strategy top-k; one cell each")
    seeds: list[Annotated[int, Field(ge=0)]] = Field([13], min_length=1, description="mean and spread over these")
    into_english: dict[LanguageCode, str] = Field(
        default_factory=dict, description="language -> route into English, for translate-test"
    )
    statistic: Literal["pearson", "spearman", "kendall_tau_b"] = "spearman"
