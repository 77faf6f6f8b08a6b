"""Bootstrap intervals by dialogue group.

Responses to one context, and the translations of one dialogue, are not independent, so whole groups are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mdialeval.agreement.correlations import Array, paired, resampled, undefined
from mdialeval.errors import ConfigError

CHUNK = 4_000_000
"""Multiplicities (resamples x rows) held at once."""

SHARE_NEEDED = 0.5
"""An interval needs at least this share of the resamples to be defined."""


MIN_GROUPS = 5
"""Fewer groups have too few distinct resamples for an interval: four give 35."""


class Interval(NamedTuple):
    """A percentile interval, or None twice and the reason."""

    low: float | None
    high: float | None
    reason: str = ""


class GroupDraws(NamedTuple):
    """Resamples of groups, shared by all that is to be compared.

    Attributes:
        names: the groups, sorted.
        counts: (R, G) how often each group was drawn.
    """

    names: tuple[str, ...]
    counts: npt.NDArray[np.int32]

    def columns(self, groups: Sequence[str]) -> npt.NDArray[np.int64]:
        """(n,) the column of each row's group."""
        place = {name: i for i, name in enumerate(self.names)}
        return np.array([place[g] for g in groups], np.int64)


def draw_groups(groups: Sequence[str], resamples: int, seed: int) -> GroupDraws:
    """Draw as many groups as there are, with replacement, ``resamples`` times.

    Args:
        groups: the group of each row.
        resamples: R, 0 for none.
        seed: the same seed and groups give the same draws.

    >>> draw_groups(["d2", "d1", "d2"], 4, seed=1).counts.sum(axis=1).tolist()
    [2, 2, 2, 2]
    """
    names = tuple(sorted(set(groups)))
    if not names or not resamples:
        return GroupDraws(names, np.zeros((0, len(names)), np.int32))
    share = np.full(len(names), 1 / len(names))
    counts = np.random.default_rng(seed).multinomial(len(names), share, size=resamples)
    return GroupDraws(names, counts.astype(np.int32))


def too_few(groups: int) -> str:
    """Why a number of dialogue groups gives no interval; empty where it does.

    >>> too_few(4)
    'no interval: 4 dialogue groups, at least 5 are needed'
    """
    return f"no interval: {groups} dialogue groups, at least {MIN_GROUPS} are needed" if groups < MIN_GROUPS else ""


def resample(statistic: str, x: Array, y: Array, columns: npt.NDArray[np.int64], draws: GroupDraws) -> Array:
    """(R,) one statistic in every resample; NaN where it is undefined (see ``correlations.resampled``).

    Args:
        x, y: (n,) predictions and ratings on which the statistic is defined.
        columns: (n,) each row's column in ``draws.counts``.
    """
    step = max(1, CHUNK // max(1, len(x)))
    counts = draws.counts.T.astype(np.float64, order="C")  # (G, R), so that a row's multiplicities lie together
    parts = [
        resampled(statistic, x, y, counts[columns, start : start + step]) for start in range(0, len(draws.counts), step)
    ]
    return np.concatenate(parts) if parts else np.zeros(0)


def percentile(values: Array, confidence: float) -> Interval:
    """The central interval that holds ``confidence`` of the defined values.

    Args:
        values: (R,) NaN marks a resample without a value.
        confidence: in (0, 1).
    """
    if not 0 < confidence < 1:
        raise ConfigError(f"confidence must lie between 0 and 1, not {confidence}")
    if len(values) == 0:
        return Interval(None, None, "no resamples")
    defined = values[np.isfinite(values)]
    if len(defined) < SHARE_NEEDED * len(values):
        return Interval(
            None, None, f"no interval: undefined in {len(values) - len(defined)} of {len(values)} resamples"
        )
    tail = (1 - confidence) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    return Interval(float(low), float(high))


def bootstrap(
    statistic: str,
    predictions: Sequence[float] | Array,
    ratings: Sequence[float] | Array,
    groups: Sequence[str] | None = None,
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 13,
) -> Interval:
    """The percentile bootstrap interval of one statistic (Efron 1979), drawn by group.

    Args:
        predictions, ratings: n values each.
        groups: the dialogue of each row; None where every row stands alone.

    Raises:
        DataError: values that are not finite, or sides of different length.

    >>> x = [1, 2, 3, 4, 5, 6, 7, 8]
    >>> low, high, _ = bootstrap("spearman", x, [1, 3, 2, 4, 6, 5, 8, 7], resamples=200)
    >>> low < 0.9 <= high
    True
    """
    x, y = paired(predictions, ratings)
    names = [str(i) for i in range(len(x))] if groups is None else list(groups)
    if reason := undefined(statistic, x, y):
        return Interval(None, None, reason)
    if reason := too_few(len(set(names))):
        return Interval(None, None, reason)
    draws = draw_groups(names, resamples, seed)
    return percentile(resample(statistic, x, y, draws.columns(names), draws), confidence)
