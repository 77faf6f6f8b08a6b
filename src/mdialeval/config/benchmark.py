"""The ``benchmark`` section."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mdialeval.config.section import LanguageCode, Section

Strategy = Literal["english", "translate-train", "multilingual", "top-k", "madx", "lora", "translate-test"]
Percentage = Annotated[float, Field(gt=0, le=100)]


class BenchmarkConfig(Section):
    """Which ways of using translated data are compared, and how often each is repeated."""

    strategies: list[Strategy] = Field(
        ["english", "multilingual", "top-k"],
        min_length=1,
        description="english = zero-shot transfer; translate-train = one evaluator a language; multilingual = English "
        "and all translations; top-k = multilingual on the best k per cent; madx = a task adapter learned on English, "
        "language adapters swapped; lora = multilingual with LoRA; translate-test = responses into English",
    )
    k: list[Percentage] = Field([5.0, 10.0, 20.0, 50.0, 75.0], description="of the strategy top-k; one cell each")
    seeds: list[Annotated[int, Field(ge=0)]] = Field([13], min_length=1, description="mean and spread over these")
    into_english: dict[LanguageCode, str] = Field(
        default_factory=dict, description="language -> route into English, for translate-test"
    )
    parallel: int = Field(1, ge=1, description="cells that run at once, each in a process of its own")
    threads: int | None = Field(
        None, ge=1, description="of a cell; the cores divided by parallel where empty. Same threads, same numbers"
    )
    statistic: Literal["pearson", "spearman", "kendall_tau_b"] = "spearman"
