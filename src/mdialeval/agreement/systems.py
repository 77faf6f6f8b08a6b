"""System-level agreement: the systems' mean scores against their mean ratings, over the same rows."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from mdialeval.agreement.correlations import RELATIVE_SPREAD, Array, correlation
from mdialeval.agreement.intervals import GroupDraws
from mdialeval.records import Example, Prediction

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


@dataclass(frozen=True, slots=True)
class SystemRow:
    """How one scorer sees the responses of one system, or of one kind of constructed response.

    Attributes:
        n: rated and scored responses of the system, over all languages.
        rating, score: their means.
        beaten: how often a response of a best-rated system to the same context scores higher, ties half; 0.5 is
            chance, None for the best-rated systems themselves (several where their mean ratings are equal).
    """

    dataset: str
    scorer: str
    dimension: str
    system: str
    n: int
    rating: float
    score: float
    beaten: float | None


def by_system(predictions: Iterable[Prediction], examples: Iterable[Example], dataset: str) -> Iterator[SystemRow]:
    """Mean score and win rate of each system where a scorer's dimension is also rated; best-rated systems first.

    Responses are compared within a dialogue and language only.  Sets in which some responses name no system, or fewer
    than two systems are named, give nothing.
    """
    known = {(e.id, e.language): e for e in examples}
    if any(not e.system for e in known.values()):
        return
    cells: dict[tuple[str, str], dict[str, list[tuple[tuple[str, str], float, float]]]] = defaultdict(dict)
    for p in predictions:
        example = known.get((p.example_id, p.language))
        if example is not None and p.score is not None and p.dimension in example.ratings:
            context = (example.group or example.id, p.language)
            row = (context, example.ratings[p.dimension], p.score)
            cells[p.scorer, p.dimension].setdefault(example.system, []).append(row)
    for (scorer, dimension), systems in cells.items():
        rating = {name: fmean(r for _, r, _ in rows) for name, rows in systems.items()}
        ordered = sorted(systems, key=lambda name: (-rating[name], name))
        top = {name for name in ordered if math.isclose(rating[name], rating[ordered[0]], abs_tol=1e-12)}
        best: dict[tuple[str, str], list[float]] = defaultdict(list)
        for context, _, score in (row for name in top for row in systems[name]):
            best[context].append(score)
        for name in ordered if len(ordered) > len(top) else ():
            rows = systems[name]
            wins = [(b > s) + (b == s) / 2 for c, _, s in rows for b in best.get(c, ())]
            yield SystemRow(
                *(dataset, scorer, dimension, name, len(rows)),
                rating=rating[name],
                score=fmean(s for *_, s in rows),
                beaten=fmean(wins) if wins and name not in top else None,
            )
