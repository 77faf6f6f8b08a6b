"""How far annotators agree with each other, and a judge that is asked again with itself: Krippendorff's alpha.

It is the ceiling that a scorer is read against: nobody agrees with others more than with himself.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mdialeval.agreement.correlations import Array, Value, correlation
from mdialeval.errors import ConfigError, nearest
from mdialeval.records import Prediction

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


@dataclass(frozen=True, slots=True)
class SelfAgreement:
    """How far a judge agrees with itself on one criterion, in one language of one data set.

    Attributes:
        repeats: how often each row was asked.
        n: rows that were asked repeatedly.
        n_paired: rows among them with at least two scores; the figures are computed on these.
        alpha: Krippendorff's alpha of the repetitions with interval distances, at most 1; None where it is undefined.
        spread: mean over rows of the standard deviation of a row's scores, on the judge's scale; None without rows.
        reason: why ``alpha`` is undefined.
    """

    scorer: str
    dataset: str
    language: str
    dimension: str
    repeats: int
    n: int
    n_paired: int
    alpha: float | None
    spread: float | None
    reason: str = ""


def self_agreements(predictions: Iterable[Prediction], dataset: str) -> list[SelfAgreement]:
    """One row a judge, criterion and language that was asked repeatedly (``samples`` in the details)."""
    cells: dict[tuple[str, str, str], list[Prediction]] = {}
    for p in predictions:
        if "samples" in p.detail:
            cells.setdefault((p.scorer, p.dimension, p.language), []).append(p)
    return [_self_agreement(dataset, key, repeated_scores(rows)) for key, rows in cells.items()]


def repeated_scores(predictions: Iterable[Prediction]) -> list[list[float | None]]:
    """The scores of each prediction's repetitions, None where one has no score: units of ``krippendorff_alpha``.

    Predictions without repetitions are left out.
    """
    found = [p.detail["samples"] for p in predictions if "samples" in p.detail]
    return [[float(score) if score else None for score in str(samples).split(",")] for samples in found]


def _self_agreement(dataset: str, key: tuple[str, str, str], units: Sequence[Sequence[float | None]]) -> SelfAgreement:
    scorer, dimension, language = key
    alpha, reason = krippendorff_alpha(units, "interval")
    known = [[v for v in unit if v is not None] for unit in units]
    spreads = [statistics.pstdev(unit) for unit in known if len(unit) > 1]
    repeats = max(len(unit) for unit in units)
    spread = statistics.fmean(spreads) if spreads else None
    return SelfAgreement(scorer, dataset, language, dimension, repeats, len(units), len(spreads), alpha, spread, reason)
