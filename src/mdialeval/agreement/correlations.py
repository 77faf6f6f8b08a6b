"""Correlation statistics for scores with ties, on one sample or on thousands of weighted resamples at once.

A bootstrap resample is a row of multiplicities: how often each rated row was drawn.  Ranks, ties and pair counts are
recomputed inside every resample from those multiplicities, so a resampled Spearman or Kendall is exactly the one that
a loop over copied rows would give.  A single sample is the resample in which every row is drawn once, so there is one
implementation of each statistic.

Statistics (all higher is better): ``pearson``, ``spearman`` (midranks) and ``kendall_tau_b`` in [-1, 1]; ``acc_eq`` in
[0, 1], the share of pairs that both sides order or tie alike (Deutsch, Foster and Freitag, EMNLP 2023);
``acc_eq_calibrated``, the same after the tie calibration of that paper; ``auc`` in [0, 1] for binary ratings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mdialeval.agreement.pairs import Levels, Pairs, agreeing_pairs, calibrate, pair_counts
from mdialeval.errors import ConfigError, DataError, nearest

Array = npt.NDArray[np.float64]

STATISTICS = ("pearson", "spearman", "kendall_tau_b", "acc_eq", "acc_eq_calibrated", "auc")
RELATIVE_SPREAD = 1e-12
"""Values whose spread is below this share of their size are constant: the rest is rounding."""


class Value(NamedTuple):
    """A statistic, or None and the reason why it is undefined."""

    value: float | None
    reason: str = ""


def correlation(statistic: str, predictions: Sequence[float] | Array, ratings: Sequence[float] | Array) -> Value:
    """One statistic of predictions against ratings; never NaN.

    Args:
        statistic: one of ``STATISTICS``.
        predictions: n scores, any scale, higher is better.
        ratings: n ratings in the same order.

    Returns:
        the value, or None with ``fewer than 3 rows``, ``constant predictions``, ``constant ratings`` or
        ``ratings are not binary``.

    Raises:
        DataError: a value that is not finite, or two sides of different length.
        ConfigError: an unknown statistic.

    >>> round(correlation("spearman", [3, 3, 1, 2, 2, 2, 5, 5], [1, 4, 4, 2, 2, 5, 5, 3]).value, 3)
    0.075
    >>> correlation("pearson", [1, 1, 1, 1], [1, 2, 3, 4])
    Value(value=None, reason='constant predictions')
    """
    x, y = paired(predictions, ratings)
    if reason := undefined(statistic, x, y):
        return Value(None, reason)
    return Value(float(resampled(statistic, x, y, np.ones((len(x), 1)))[0]))


def paired(predictions: Sequence[float] | Array, ratings: Sequence[float] | Array) -> tuple[Array, Array]:
    """Both sides as float arrays of one length.

    Raises:
        DataError: different lengths, or a value that is not a finite number (its row is named).
    """
    x, y = np.asarray(predictions, np.float64), np.asarray(ratings, np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise DataError(f"{x.shape} predictions against {y.shape} ratings: both sides need the same rows")
    for name, values in (("predictions", x), ("ratings", y)):
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            raise DataError(
                f"row {wrong[0] + 1} of the {name} is {values[wrong[0]]}: leave rows without a number out, "
                f"with a status ({len(wrong)} such rows)"
            )
    return x, y


def undefined(statistic: str, x: Array, y: Array) -> str:
    """Why a statistic has no value on this sample; empty where it has one.

    Raises:
        ConfigError: an unknown statistic.
    """
    if statistic not in STATISTICS:
        raise ConfigError(f"unknown statistic {statistic!r}: {nearest(statistic, STATISTICS)}")
    if len(x) < 3:
        return "fewer than 3 rows"
    if constant(x):
        return "constant predictions"
    if constant(y):
        return "constant ratings"
    if statistic == "auc" and (levels := len(np.unique(y))) != 2:
        return f"ratings are not binary ({levels} levels)"
    return ""


def constant(values: Array) -> bool:
    """Whether all values are equal, up to rounding.

    >>> constant(np.array([0.1 + 0.2, 0.3])), constant(np.array([0.0, 1e-6]))
    (True, False)
    """
    return bool(np.ptp(values) <= RELATIVE_SPREAD * np.abs(values).max())


def resampled(statistic: str, x: Array, y: Array, weights: Array) -> Array:
    """One statistic in many resamples.

    Args:
        statistic: one of ``STATISTICS``; it must be defined on the whole sample (``undefined`` is empty).
        x, y: (n,) predictions and ratings.
        weights: (n, R) how often each row was drawn, whole numbers.

    Returns:
        (R,) values; NaN marks a resample in which the statistic is undefined (one side constant), for
        ``intervals.percentile`` to leave out and count.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return _RESAMPLED[statistic](x, y, weights)


def _pearson(x: Array, y: Array, weights: Array) -> Array:
    a, b = _standardised(x), _standardised(y)
    terms = np.stack([np.ones_like(a), a, b, a * a, b * b, a * b])  # (6, n)
    total, sa, sb, saa, sbb, sab = terms @ weights
    covariance = sab - sa * sb / total
    variances = (saa - sa * sa / total) * (sbb - sb * sb / total)
    values: Array = np.clip(covariance / np.sqrt(variances), -1.0, 1.0)
    varied = _varied(Pairs.of(x, y), weights)
    return np.where(varied, values, np.nan)


def _standardised(values: Array) -> Array:
    """Centred and scaled, so that sums of squares keep their digits."""
    centred = values - values.mean()
    scaled: Array = centred / np.abs(centred).max()
    return scaled


def _varied(pairs: Pairs, weights: Array) -> Any:
    """(R,) whether neither side is constant in a resample."""
    x_levels = np.count_nonzero(pairs.x.totals(weights), axis=0)
    y_levels = np.count_nonzero(pairs.y.totals(weights), axis=0)
    return (x_levels > 1) & (y_levels > 1)


def _spearman(x: Array, y: Array, weights: Array) -> Array:
    pairs = Pairs.of(x, y)
    x_totals, y_totals = pairs.x.totals(weights), pairs.y.totals(weights)
    a, b = _centred_midranks(x_totals), _centred_midranks(y_totals)  # (levels of x, R), (levels of y, R)
    covariance = np.einsum("nr,nr,nr->r", weights, a[pairs.x.codes], b[pairs.y.codes])
    variances = (x_totals * a * a).sum(axis=0) * (y_totals * b * b).sum(axis=0)
    values: Array = np.clip(covariance / np.sqrt(variances), -1.0, 1.0)
    return values


def _centred_midranks(totals: Array) -> Array:
    """(L, R) midrank of each level minus the mean rank, from how many rows each level has, levels ascending."""
    below = np.cumsum(totals, axis=0)
    ranks: Array = below - totals / 2 - below[-1:] / 2
    return ranks


def _kendall(x: Array, y: Array, weights: Array) -> Array:
    counts = pair_counts(x, y, weights)
    untied = (counts.pairs - counts.x_tied) * (counts.pairs - counts.y_tied)
    values: Array = np.clip((counts.concordant - counts.discordant) / np.sqrt(untied), -1.0, 1.0)
    return values


def _acc_eq(x: Array, y: Array, weights: Array) -> Array:
    counts = pair_counts(x, y, weights)
    values: Array = (counts.concordant + counts.both_tied - counts.copies) / (counts.pairs - counts.copies)
    return values


def _acc_eq_calibrated(x: Array, y: Array, weights: Array) -> Array:
    return agreeing_pairs(x, y, calibrate(x, y).epsilon, weights)


def _auc(x: Array, y: Array, weights: Array) -> Array:
    levels = Levels.of(x)
    totals = levels.totals(weights)
    high = y == y.max()
    ranks = (np.cumsum(totals, axis=0) - totals / 2 + 0.5)[levels.codes[high]]
    positive = weights[high]
    n_positive = positive.sum(axis=0)
    n_negative = weights.sum(axis=0) - n_positive
    wins = (positive * ranks).sum(axis=0) - n_positive * (n_positive + 1) / 2
    values: Array = wins / (n_positive * n_negative)
    return values


_RESAMPLED = {
    "pearson": _pearson,
    "spearman": _spearman,
    "kendall_tau_b": _kendall,
    "acc_eq": _acc_eq,
    "acc_eq_calibrated": _acc_eq_calibrated,
    "auc": _auc,
}


def p_value(statistic: str, x: Array, y: Array) -> float | None:
    """Two-sided p-value of no association, for independent rows.

    Rows of one dialogue are not independent; the interval, drawn by dialogue, is the safer reading.  ``acc_eq`` has no
    p-value: its chance level stands beside it.
    """
    from scipy import stats

    if undefined(statistic, x, y) or statistic.startswith("acc_eq"):
        return None
    if statistic == "kendall_tau_b":
        return float(stats.kendalltau(x, y).pvalue)
    if statistic == "auc":
        high = y == y.max()
        return float(stats.mannwhitneyu(x[high], x[~high], alternative="two-sided").pvalue)
    r = float(resampled(statistic, x, y, np.ones((len(x), 1)))[0])
    return t_test(r, len(x))


def t_test(r: float, n: int) -> float:
    """Two-sided p-value of a correlation of n rows, from Student's t with n - 2 degrees of freedom.

    >>> round(t_test(0.5, 20), 4)
    0.0248
    """
    from scipy import special

    if abs(r) >= 1.0:
        return 0.0
    return float(2 * special.stdtr(n - 2, -abs(r) * math.sqrt((n - 2) / (1 - r * r))))
