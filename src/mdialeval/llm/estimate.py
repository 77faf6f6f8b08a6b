"""What asking will cost before it is asked, and what it did cost: calls, tokens, money."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mdialeval.errors import ConfigError, nearest
from mdialeval.llm.protocol import Prompt

_OVERHEAD = 12  # tokens that a chat template puts around two messages


@dataclass(frozen=True, slots=True)
class Prices:
    """Money for a million tokens.

    Attributes:
        prompt, completion: price of a million prompt and completion tokens, not negative.
        currency: for people.
    """

    prompt: float
    completion: float
    currency: str = "USD"

    @classmethod
    def of(cls, values: Mapping[str, float | str] | None) -> Prices | None:
        """From an option such as ``{prompt: 0.15, completion: 0.6, currency: USD}``; None where there is none.

        Raises:
            ConfigError: an unknown or missing key, or a price that is no amount of money.
        """
        if values is None:
            return None
        known = ("prompt", "completion", "currency")
        problems = [f"llm prices: unknown key {key!r}: {nearest(key, known)}" for key in values if key not in known]
        prices = {}
        for key in known[:2]:
            value = values.get(key)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
                problems.append(f"llm prices: {key} must be the price of a million tokens, not {value!r}")
            else:
                prices[key] = float(value)
        if problems:
            raise ConfigError(problems)
        return cls(prices["prompt"], prices["completion"], str(values.get("currency", "USD")))

    def money(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The price of one call or of many.

        >>> Prices(0.5, 1.5).money(1_000_000, 2_000_000)
        3.5
        """
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / 1e6


@dataclass(frozen=True, slots=True)
class Estimate:
    """What scoring would take.

    Attributes:
        calls: replies to be asked for.
        cached: replies that are there already.
        prompt_tokens: of the calls, counted by characters (about 20 per cent either way).
        completion_tokens: at most.
        money: at most, in ``currency``; None without a price table.
    """

    calls: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    money: float | None
    currency: str

    def __str__(self) -> str:
        """One line for people."""
        price = "no price table" if self.money is None else f"at most {self.money:.4f} {self.currency}"
        return (
            f"{self.calls:,} calls ({self.cached:,} replies cached), about {self.prompt_tokens:,} prompt tokens and at "
            f"most {self.completion_tokens:,} completion tokens, {price}"
        )


def approximate_tokens(text: str) -> int:
    """Tokens of a text by its characters, for a vocabulary of 100,000 or more.

    About 4 characters a token in ASCII, 2.5 in other alphabets and 1.2 in scripts without blanks, rounded up.

    >>> approximate_tokens("How are you?"), approximate_tokens("你好吗")
    (3, 3)
    """
    ascii_, dense, other = 0, 0, 0
    for character in text:
        if character < "\u0080":
            ascii_ += 1
        elif "\u0e00" <= character <= "\u0eff" or "\u3040" <= character <= "\u9fff" or character > "\uffff":
            dense += 1
        else:
            other += 1
    return -int(-(ascii_ / 4 + other / 2.5 + dense / 1.2) // 1)


def estimate(missing: Sequence[Prompt], cached: int, max_tokens: int, prices: Prices | None) -> Estimate:
    """The cost of prompts that are still to be asked."""
    prompt_tokens = sum(approximate_tokens(p.system) + approximate_tokens(p.user) + _OVERHEAD for p in missing)
    completion_tokens = max_tokens * len(missing)
    money = None if prices is None else prices.money(prompt_tokens, completion_tokens)
    return Estimate(len(missing), cached, prompt_tokens, completion_tokens, money, prices.currency if prices else "")
