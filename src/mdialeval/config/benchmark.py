"""The ``benchmark`` section."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from mdialeval.config.section import LanguageCode, Section
from mdialeval.errors import nearest

STRATEGIES = ("english", "translate-train", "multilingual", "top-k", "madx", "lora", "translate-test")
WITH_LIKELIHOOD = "+likelihood"
"""What follows the name of a strategy whose evaluators also read ``train.likelihood``."""


def _strategy(name: str) -> str:
    if (plain := name.removesuffix(WITH_LIKELIHOOD)) not in STRATEGIES:
        raise ValueError(f"no strategy {plain!r}: {nearest(plain, STRATEGIES)}")
    return name


Strategy = Annotated[str, AfterValidator(_strategy)]
Percentage = Annotated[float, Field(gt=0, le=100)]


class BenchmarkConfig(Section):
    """Which ways of using translated data are compared, and how often each is repeated."""

    strategies: list[Strategy] = Field(
        ["english", "multilingual", "top-k"],
        min_length=1,
        description="english = zero-shot transfer; translate-train = one evaluator a language; multilingual = English "
        "and all translations; top-k = multilingual on the best k per cent; madx = a task adapter learned on English, "
        "language adapters swapped; lora = multilingual with LoRA; translate-test = responses into English; any of "
        "them with +likelihood = also reads the language model of train.likelihood ('embedded' where empty)",
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

    @property
    def plain(self) -> tuple[str, ...]:
        """The strategies, whether or not they also read a language model, each once."""
        return tuple(dict.fromkeys(name.removesuffix(WITH_LIKELIHOOD) for name in self.strategies))
