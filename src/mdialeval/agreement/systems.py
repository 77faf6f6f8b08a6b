"""System-level agreement: the systems' mean scores against their mean ratings, over the same rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from mdialeval.agreement.correlations import RELATIVE_SPREAD, Array, correlation
from mdialeval.agreement.intervals import GroupDraws

MIN_SYSTEMS = 5
"""Fewer systems give no system-level correlation worth a line."""


def system_means(x: Array, y: Array, systems: Sequence[str]) -> tuple[Array, Array]:
    """(S,) mean prediction and (S,) mean rating of each system, names ascending.

    >>> [m.tolist() for m in system_means(np.array([1.0, 3, 5]), np.array([0.0, 1, 1]), ["b", "b", "a"])]
    [[5.0, 2.0], [1.0, 0.5]]
    """
    members = _members(systems)
    sizes = members.sum(axis=0)
    return x @ members / sizes, y @ members / sizes


def resample_systems(
    statistic: str,
    x: Array,
    y: Array,
    systems: Sequence[str],
    columns: npt.NDArray[np.int64],
    draws: GroupDraws,
) -> Array:
    """(R,) the system-level statistic in every resample of dialogue groups; NaN where it is undefined."""
    members = _members(systems)
    totals = np.zeros((3, len(draws.names), members.shape[1]))  # of x, y and 1, a dialogue group and system
    for part, column in zip(totals, (x, y, np.ones_like(x)), strict=True):
        np.add.at(part, columns, column[:, None] * members)
    sums = draws.counts @ totals  # (3, R, S)
    values = np.full(len(draws.counts), np.nan)
    complete = np.flatnonzero((sums[2] > 0).all(axis=1))
    if statistic in _BY_ROW:
        means_x, means_y = (part[complete] / sums[2][complete] for part in sums[:2])
        varied = _varied(means_x) & _varied(means_y)
        values[complete[varied]] = _BY_ROW[statistic](means_x[varied], means_y[varied])
        return values
    for r in complete:
        value = correlation(statistic, *(sums[:2, r] / sums[2, r])).value
        values[r] = np.nan if value is None else value
    return values


def _varied(means: Array) -> npt.NDArray[np.bool_]:
    """(R,) whether a row is not constant, up to rounding."""
    varied: npt.NDArray[np.bool_] = np.ptp(means, axis=1) > RELATIVE_SPREAD * np.abs(means).max(axis=1)
    return varied


def _pearson(x: Array, y: Array) -> Array:
    """(R, S) against (R, S), row by row: (R,)."""
    a, b = (part - part.mean(axis=1, keepdims=True) for part in (x, y))
    values: Array = np.clip((a * b).sum(axis=1) / np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1)), -1.0, 1.0)
    return values


def _spearman(x: Array, y: Array) -> Array:
    return _pearson(rankdata(x, axis=1), rankdata(y, axis=1))


def _kendall(x: Array, y: Array) -> Array:
    a, b = _signs(x), _signs(y)
    untied = np.sqrt(np.count_nonzero(a, axis=1) * np.count_nonzero(b, axis=1))
    values: Array = (a * b).sum(axis=1) / untied
    return values


def _acc_eq(x: Array, y: Array) -> Array:
    values: Array = (_signs(x) == _signs(y)).mean(axis=1)
    return values


def _signs(means: Array) -> Array:
    """(R, S * (S - 1) / 2) the order of every pair of systems: -1, 0 or 1."""
    first, second = np.triu_indices(means.shape[1], k=1)
    signs: Array = np.sign(means[:, first] - means[:, second])
    return signs


_BY_ROW: Mapping[str, Callable[[Array, Array], Array]] = {
    "pearson": _pearson,
    "spearman": _spearman,
    "kendall_tau_b": _kendall,
    "acc_eq": _acc_eq,
}
"""Statistics of all resamples at once; a loop over a thousand of them costs seconds a report."""


def _members(systems: Sequence[str]) -> Array:
    """(n, S) 1 where a row is of a system."""
    names, codes = np.unique(list(systems), return_inverse=True)
    members: Array = np.eye(len(names))[codes]
    return members
