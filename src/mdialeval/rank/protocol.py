"""What a quality estimator is, and the table of estimators: one estimator a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from mdialeval.records import Translation

ESTIMATORS: Mapping[str, str] = {}


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
