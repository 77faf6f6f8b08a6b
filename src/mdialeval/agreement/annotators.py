"""How far annotators agree with each other: Krippendorff's alpha, the ceiling that a scorer is read against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from mdialeval.agreement.correlations import Array, Value, correlation
from mdialeval.errors import ConfigError, nearest

Scale = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(units: Sequence[Sequence[float | None]], scale: Scale = "ordinal") -> Value:
    """Krippendorff's alpha: 1 is full agreement, 0 what chance gives, below 0 systematic disagreement.

    Args:
        units: per rated item its raters' values, None where a rater did not rate.  Items with fewer than two values
            pair with nothing and are left out.
        scale: what the distance between two values is.

    Returns:
        the value, or None where fewer than two values can be paired or all are equal.

    Reference: Krippendorff, Computing Krippendorff's alpha-reliability, 2011.

    >>> round(krippendorff_alpha([[1, 1], [2, 2], [3, 3], [3, 4]], "interval").value, 3)
    0.889
    """
    known = [[v for v in unit if v is not None] for unit in units]
    known = [unit for unit in known if len(unit) > 1]
    if not known:
        return Value(None, "no item has two ratings")
    levels = np.unique(np.concatenate(known))
    if len(levels) == 1:
        return Value(None, "constant ratings")
    counts = np.zeros((len(known), len(levels)))  # items x levels
    for row, unit in zip(counts, known, strict=True):
        np.add.at(row, np.searchsorted(levels, unit), 1)
    sizes = counts.sum(axis=1)
    scaled = counts / (sizes - 1)[:, None]
    coincidences = counts.T @ scaled - np.diag(scaled.sum(axis=0))
    totals = coincidences.sum(axis=0)
    distance = _distances(levels, totals, scale)
    expected = (np.outer(totals, totals) - np.diag(totals)) / (totals.sum() - 1)
    return Value(float(1 - (coincidences * distance).sum() / (expected * distance).sum()))


def _distances(levels: Array, totals: Array, scale: str) -> Array:
    """(L, L) squared distances between levels."""
    if scale == "nominal":
        return 1.0 - np.eye(len(levels))
    if scale == "ordinal":  # a level's place is how many values lie below its middle
        levels = np.cumsum(totals) - totals / 2
    elif scale != "interval":
        raise ConfigError(f"unknown scale {scale!r}: {nearest(scale, ['nominal', 'ordinal', 'interval'])}")
    squared: Array = np.square(np.subtract.outer(levels, levels))
    return squared


def leave_one_out(units: Sequence[Sequence[float | None]], statistic: str = "spearman") -> Mapping[int, Value]:
    """Each rater against the mean of the others: what a person reaches where scorers are compared with the mean.

    Returns:
        rater index -> value, or None with a reason.
    """
    found: dict[int, Value] = {}
    for rater in range(max((len(u) for u in units), default=0)):
        own, rest = [], []
        for unit in units:
            others = [v for i, v in enumerate(unit) if i != rater and v is not None]
            mine = unit[rater] if rater < len(unit) else None
            if mine is not None and others:
                own.append(mine)
                rest.append(sum(others) / len(others))
        found[rater] = correlation(statistic, own, rest)
    return found
