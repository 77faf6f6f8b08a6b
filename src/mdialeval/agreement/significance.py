"""Is one scorer better than another on the same rows?  Three tests, and the correction for asking often."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mdialeval.agreement.correlations import Array, correlation, paired, resampled
from mdialeval.agreement.intervals import draw_groups, percentile, resample, too_few


class Difference(NamedTuple):
    """How far a first scorer's agreement lies above a second's on the same rows.

    Attributes:
        value: first minus second; None where either is undefined.
        low, high: interval of the difference, or None (tests without one).
        p_value: two-sided, of no difference; None where undefined.
        reason: why there is no value.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    reason: str = ""


def paired_bootstrap(
    statistic: str,
    first: Sequence[float] | Array,
    second: Sequence[float] | Array,
    ratings: Sequence[float] | Array,
    groups: Sequence[str] | None = None,
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 13,
) -> Difference:
    """Both scorers in the same resamples of dialogue groups (after Koehn, EMNLP 2004).

    The p-value is twice the smaller tail of the differences at zero, counting the sample itself.

    Args:
        statistic: one of ``correlations.STATISTICS``.
        first, second, ratings: n values each.
        groups: the dialogue of each row; None where every row stands alone.

    Raises:
        DataError: values that are not finite, or sides of different length.
    """
    a, b, y = _three(first, second, ratings)
    names = [str(i) for i in range(len(y))] if groups is None else list(groups)
    value, reason = _difference(statistic, a, b, y)
    if value is None:
        return Difference(None, reason=reason)
    if reason := too_few(len(set(names))):
        return Difference(value, reason=reason)
    draws = draw_groups(names, resamples, seed)
    columns = draws.columns(names)
    differences = resample(statistic, a, y, columns, draws) - resample(statistic, b, y, columns, draws)
    low, high, reason = percentile(differences, confidence)
    return Difference(value, low, high, two_tails(differences), reason)


def two_tails(differences: Array) -> float | None:
    """Twice the smaller tail of resampled differences at zero, at least 2 / (R + 1); None without differences.

    >>> two_tails(np.array([0.1, 0.2, 0.3]))
    0.5
    """
    defined = differences[np.isfinite(differences)]
    if not len(defined):
        return None
    tail = min(int((defined <= 0).sum()), int((defined >= 0).sum()))
    return min(1.0, 2 * (tail + 1) / (len(defined) + 1))


def randomisation(
    statistic: str,
    first: Sequence[float] | Array,
    second: Sequence[float] | Array,
    ratings: Sequence[float] | Array,
    groups: Sequence[str] | None = None,
    *,
    shuffles: int = 1000,
    seed: int = 13,
) -> Difference:
    """Approximate randomisation: the two scorers' outputs are exchanged at random, a whole dialogue at a time.

    Scores are brought to one scale first (standard scores for Pearson, midranks otherwise), since scales of different
    scorers cannot be exchanged (Noreen 1989; Deutsch et al., TACL 2021).

    Raises:
        DataError: values that are not finite, or sides of different length.
    """
    a, b, y = _three(first, second, ratings)
    value, reason = _difference(statistic, a, b, y)
    if value is None:
        return Difference(None, reason=reason)
    scale = _standard_scores if statistic == "pearson" else _midranks
    a, b = scale(a), scale(b)
    _, columns = np.unique(list(groups) if groups is not None else np.arange(len(y)), return_inverse=True)
    random = np.random.default_rng(seed)
    once = np.ones((len(y), 1))
    at_least = 0
    for _ in range(shuffles):
        swap = (random.random(columns.max() + 1) < 0.5)[columns]
        x1, x2 = np.where(swap, b, a), np.where(swap, a, b)
        shuffled = resampled(statistic, x1, y, once)[0] - resampled(statistic, x2, y, once)[0]
        at_least += bool(abs(shuffled) >= abs(value) - 1e-12)
    return Difference(value, p_value=(at_least + 1) / (shuffles + 1))


def williams(r1: float, r2: float, r12: float, n: int) -> float | None:
    """Two-sided p-value of Williams' test for two dependent Pearson correlations (Williams 1959; Steiger 1980).

    Args:
        r1, r2: each scorer's correlation with the ratings.
        r12: the correlation of the two scorers with each other.
        n: rows, more than 3.

    Returns:
        None where n is too small or the two scorers are the same up to scale.

    >>> round(williams(0.5, 0.3, 0.6, 103), 4)
    0.0117
    """
    from scipy import special

    if n <= 3 or abs(r12) >= 1:
        return None
    determinant = 1 - r1**2 - r2**2 - r12**2 + 2 * r1 * r2 * r12
    spread = 2 * max(determinant, 0.0) * (n - 1) / (n - 3) + ((r1 + r2) / 2) ** 2 * (1 - r12) ** 3
    if spread <= 0:
        return None
    t = (r1 - r2) * math.sqrt((n - 1) * (1 + r12) / spread)
    return float(2 * special.stdtr(n - 3, -abs(t)))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction of a family of p-values; None stays None and does not count (Holm 1979).

    >>> holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    known = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for step, (p, i) in enumerate(known):
        highest = max(highest, min(1.0, (len(known) - step) * p))
        corrected[i] = highest
    return corrected


def _three(
    first: Sequence[float] | Array, second: Sequence[float] | Array, ratings: Sequence[float] | Array
) -> tuple[Array, Array, Array]:
    a, y = paired(first, ratings)
    b, _ = paired(second, ratings)
    return a, b, y


def _difference(statistic: str, a: Array, b: Array, y: Array) -> tuple[float | None, str]:
    one, other = correlation(statistic, a, y), correlation(statistic, b, y)
    if one.value is None or other.value is None:
        which = "first" if one.value is None else "second"
        return None, f"{which} scorer: {one.reason or other.reason}"
    return one.value - other.value, ""


def _standard_scores(values: Array) -> Array:
    scores: Array = (values - values.mean()) / values.std()
    return scores


def _midranks(values: Array) -> Array:
    from scipy import stats

    return np.asarray(stats.rankdata(values), np.float64)
