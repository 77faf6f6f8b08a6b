"""What a quality estimator is, and the table of estimators: one estimator a file."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable

from mdialeval.rank.lengths import Length
from mdialeval.records import Translation
from mdialeval.registry import create, resolve

ESTIMATORS: Mapping[str, str] = {
    "embedded": "mdialeval.rank.embedded.estimator:Embedded",
    "comet": "mdialeval.rank.comet:Comet",
    "cosine": "mdialeval.rank.cosine:Cosine",
    "chrf_back": "mdialeval.rank.back:BackTranslationChrf",
    "graph_back": "mdialeval.rank.graph:BackTranslationGraph",
    "given": "mdialeval.rank.given:Given",
    "dummy": "mdialeval.rank.dummy:Dummy",
}


class QualityEstimator(Protocol):
    """Estimates translation quality without a reference.  Same length, same order, no state between calls.

    Attributes:
        identity: estimator, checkpoint hash and versions, for the signature.
        higher_is_better: direction of the raw scores; the ranking turns them so that higher is better.
    """

    identity: str
    higher_is_better: bool

    def estimate(self, pairs: Sequence[Translation]) -> list[float]:
        """One score a pair; NaN where the pair cannot be estimated (never a made-up number)."""
        ...


@runtime_checkable
class MeasuresLength(Protocol):
    """An estimator with a limited window."""

    def lengths(self, pairs: Sequence[Translation]) -> list[Length]:
        """Tokens that each pair needs, against the window; same length and order."""
        ...


@runtime_checkable
class ExplainsGaps(Protocol):
    """An estimator that knows why it has no score for a pair."""

    def gaps(self, pairs: Sequence[Translation]) -> list[str]:
        """Why each pair has no score, the same few sentences for all rows of a kind; empty where it has one."""
        ...


def create_estimator(name: str, options: Mapping[str, Any] | None = None, **shared: Any) -> QualityEstimator:
    """An estimator from its name and options.

    Args:
        name: an entry of ``ESTIMATORS`` or ``their.module:Class``.
        options: the estimator's own options.
        **shared: settings of the ``rank`` section (``on_long``, ``batch_size``, ``device``) and of the run (``cache``,
            the file of graph parses); an estimator that has no such parameter does not get it, and its own options win.

    Raises:
        ConfigError: unknown name or option.
        MissingExtraError: a package it needs is not installed.
    """
    taken = inspect.signature(resolve("estimator", ESTIMATORS, name)).parameters
    merged = {key: value for key, value in shared.items() if key in taken} | dict(options or {})
    return cast(QualityEstimator, create("estimator", ESTIMATORS, name, merged))


def truncated(estimator: QualityEstimator, pairs: Sequence[Translation]) -> list[bool]:
    """Whether the estimator's window is too short for each pair; False where it has no window."""
    if not isinstance(estimator, MeasuresLength):
        return [False] * len(pairs)
    return [length.truncated for length in estimator.lengths(pairs)]


def gaps(estimator: QualityEstimator, pairs: Sequence[Translation], scores: Sequence[float]) -> list[str]:
    """Why each pair has no score: empty where it has one, ``no estimate`` where the estimator does not say."""
    unscored = [pair for pair, score in zip(pairs, scores, strict=True) if math.isnan(score)]
    reasons = iter(
        estimator.gaps(unscored) if isinstance(estimator, ExplainsGaps) and unscored else ["no estimate"] * len(pairs)
    )
    return [next(reasons) if math.isnan(score) else "" for score in scores]
