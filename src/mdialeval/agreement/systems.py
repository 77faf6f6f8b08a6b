"""System-level agreement: the systems' mean scores against their mean ratings, over the same rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mdialeval.agreement.correlations import Array, correlation
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
    values = np.full(len(draws.counts), np.nan)
    for r, counts in enumerate(draws.counts):
        weights = counts[columns][:, None] * members
        sizes = weights.sum(axis=0)
        if (sizes > 0).all():
            value = correlation(statistic, x @ weights / sizes, y @ weights / sizes).value
            values[r] = np.nan if value is None else value
    return values


def _members(systems: Sequence[str]) -> Array:
    """(n, S) 1 where a row is of a system."""
    names, codes = np.unique(list(systems), return_inverse=True)
    members: Array = np.eye(len(names))[codes]
    return members
