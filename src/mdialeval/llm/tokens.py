"""From the tokens of a reply to the probabilities of the score tokens, and their expectation.

The position of the score is that of the *last* token that is the number the parser read out of the whole reply, so a
digit of the reasoning, or the 5 of "4/5", never counts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mdialeval.errors import ConfigError
from mdialeval.llm.reply import parse_reply


class Token(NamedTuple):
    """A generated token and the probabilities of the most likely ones at its position, itself among them."""

    text: str
    alternatives: Mapping[str, float]


class Expectation(NamedTuple):
    """A probability-weighted score.

    Attributes:
        value: on the scale.
        coverage: share of all probability that lies on the score tokens, in (0, 1]; the value is the mean over that
            share alone.
    """

    value: float
    coverage: float


def score_labels(scale: tuple[float, float]) -> tuple[str, ...]:
    """The tokens of a scale, lowest first.

    Raises:
        ConfigError: the scale's scores are not single digits, so that no one token stands for a score.

    >>> score_labels((1, 5))
    ('1', '2', '3', '4', '5')
    """
    low, high = scale
    if not (low == int(low) and high == int(high) and 0 <= low < high <= 9):
        raise ConfigError(
            f"mode expectation needs a scale of whole numbers from 0 to 9, where each score is one token, not "
            f"{low:g} to {high:g}; use mode number or samples"
        )
    return tuple(str(value) for value in range(int(low), int(high) + 1))


def label_of(token: str) -> str:
    """A token as a score label: full-width digits as ASCII, without blanks."""
    return unicodedata.normalize("NFKC", token).strip()


def label_probabilities(alternatives: Mapping[str, float], labels: Sequence[str]) -> dict[str, float]:
    """The probability of each label that was reported; spellings of one label (``5`` and `` 5``) are added up.

    >>> label_probabilities({"5": 0.5, " 5": 0.25, "ok": 0.1}, ["4", "5"])
    {'5': 0.75}
    """
    found: dict[str, float] = {}
    for token, probability in alternatives.items():
        if (label := label_of(token)) in labels:
            found[label] = found.get(label, 0.0) + probability
    return found


def score_probabilities(text: str, tokens: Sequence[Token], scale: tuple[float, float]) -> dict[str, float] | None:
    """The probabilities at the score's position; None where the reply has no score, or not as one token.

    >>> tokens = [Token("5", {"5": 0.9}), Token(" flaws. Score:", {}), Token(" 2", {" 2": 0.6, " 1": 0.3})]
    >>> score_probabilities("5 flaws. Score: 2", tokens, (1, 5))
    {'2': 0.6, '1': 0.3}
    """
    score = parse_reply(text, *scale).score
    if score is None or score != int(score):
        return None
    for token in reversed(tokens):
        if label_of(token.text) == str(int(score)):
            return label_probabilities(token.alternatives, score_labels(scale))
    return None


def expectation(probabilities: Mapping[str, float]) -> Expectation | None:
    """The expected score over the labels; None where no label has any probability.

    >>> expectation({"4": 0.25, "5": 0.25})
    Expectation(value=4.5, coverage=0.5)
    """
    coverage = sum(probabilities.values())
    if coverage <= 0:
        return None
    return Expectation(sum(int(label) * p for label, p in probabilities.items()) / coverage, min(coverage, 1.0))
