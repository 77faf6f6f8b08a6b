"""Variants of one scorer, each trained with several seeds, on one set of examples: figures and tested differences.

Sets whose ratings are 0 and 1 (made by construction) give accuracy and AUC against each kind of negatives; rated sets
give a correlation, as the mean over languages.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mdialeval.agreement.agree import Key, group_of
from mdialeval.agreement.correlations import Array, Value, correlation
from mdialeval.agreement.intervals import GroupDraws, draw_groups, percentile, resample, too_few
from mdialeval.agreement.significance import Difference, holm, two_tails
from mdialeval.records import Example

ACCURACY = "accuracy"
"""Share right at a score of .5, both classes counting alike, in [0, 1]."""

Scores = Mapping[Key, float]


class Part(NamedTuple):
    """The rows of one language."""

    keys: tuple[Key, ...]
    ratings: Array
    groups: tuple[str, ...]


class Measure(NamedTuple):
    """One column of the table: a statistic on some rows of a data set.

    Attributes:
        name: statistic and what it is of.
        statistic: ``accuracy`` or one of ``correlations.STATISTICS``.
        parts: by language; the figure is the mean over them.
    """

    dataset: str
    name: str
    statistic: str
    parts: tuple[Part, ...]

    @property
    def n(self) -> int:
        """Rows over all languages."""
        return sum(len(part.keys) for part in self.parts)


def measures(dataset: str, examples: Sequence[Example], scored: str, statistic: str) -> Iterator[Measure]:
    """What can be measured on a set, dimension by dimension.

    A binary dimension gives accuracy and AUC against the negatives of each ``system`` (*random*, *adversarial*).

    Args:
        dataset: its name.
        examples: all of them.
        scored: the dimension that the scorers measure: the only one where the set rates it.
        statistic: on ratings that are not binary.
    """
    names = {name for example in examples for name in example.ratings}
    for dimension in sorted({scored} if scored in names else names):
        rated = [e for e in examples if dimension in e.ratings]
        values = {e.ratings[dimension] for e in rated}
        if values == {0.0, 1.0}:
            for kind in sorted({e.system for e in rated if not e.ratings[dimension]}):
                chosen = [e for e in rated if e.ratings[dimension] or e.system == kind]
                for name in (ACCURACY, "auc"):
                    yield Measure(dataset, f"{kind or dimension} {name}", name, _parts(chosen, dimension))
        else:
            yield Measure(dataset, f"{dimension} {statistic}", statistic, _parts(rated, dimension))


def _parts(examples: Sequence[Example], dimension: str) -> tuple[Part, ...]:
    found = []
    for language in sorted({e.language for e in examples}):
        rows = [e for e in examples if e.language == language]
        keys = tuple((e.id, e.language) for e in rows)
        found.append(Part(keys, np.array([e.ratings[dimension] for e in rows]), tuple(group_of(e) for e in rows)))
    return tuple(found)


def figure(measure: Measure, scores: Scores) -> Value:
    """The measure of one scorer: mean over the languages in which it is defined, and which are left out and why."""
    values: list[float] = []
    reasons = []
    for part in measure.parts:
        x, y, _ = _rows(part, [scores])
        value, reason = _statistic(measure.statistic, x[0], y)
        if value is None:
            reasons.append(f"{part.keys[0][1]}: {reason}")
        else:
            values.append(value)
    return Value(statistics.fmean(values) if values else None, "; ".join(reasons))


def differences(
    measure: Measure,
    variants: Mapping[str, Sequence[Scores]],
    baseline: str,
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 13,
) -> dict[str, Difference]:
    """Each variant minus the baseline, mean over seeds and languages, with a paired bootstrap over dialogue groups.

    Everything is computed on the rows that all variants scored with all seeds.  The interval says how far the examples
    decide; the spread over seeds is another question.  Languages in which one of the variants is undefined are left
    out, which ``reason`` says.  P-values are corrected for the number of variants (Holm).

    Args:
        measure: what is compared.
        variants: name -> scores with each seed.
        baseline: one of the names.
    """
    groups = sorted({name for part in measure.parts for name in part.groups})
    draws = draw_groups(groups, resamples, seed)
    parts = [_of_part(measure.statistic, part, variants, draws) for part in measure.parts]
    defined = [part for part in parts if all(value is not None for value, _ in part.values())]
    found = {}
    for name in variants:
        if name == baseline:
            continue
        if not defined:
            found[name] = Difference(None, reason="undefined in every language")
            continue
        value = statistics.fmean((part[name][0] or 0.0) - (part[baseline][0] or 0.0) for part in defined)
        spread: Array = np.mean([part[name][1] - part[baseline][1] for part in defined], axis=0)
        if reason := too_few(len(groups)):
            found[name] = Difference(value, reason=reason)
            continue
        low, high, reason = percentile(spread, confidence)
        if len(defined) < len(parts):
            reason = "; ".join([f"mean of {len(defined)} of {len(parts)} languages", *([reason] if reason else [])])
        found[name] = Difference(value, low, high, two_tails(spread), reason)
    corrected = holm([row.p_value for row in found.values()])
    return {name: row._replace(p_value=p) for (name, row), p in zip(found.items(), corrected, strict=True)}


def _of_part(
    statistic: str, part: Part, variants: Mapping[str, Sequence[Scores]], draws: GroupDraws
) -> dict[str, tuple[float | None, Array]]:
    """Of each variant in one language: the mean over seeds, and (R,) the same in every resample."""
    x, y, groups = _rows(part, [scores for seeds in variants.values() for scores in seeds])
    columns, start = draws.columns(groups), 0
    found: dict[str, tuple[float | None, Array]] = {}
    for name, seeds in variants.items():
        rows = x[start : start + len(seeds)]
        start += len(seeds)
        values = [value for row in rows if (value := _statistic(statistic, row, y).value) is not None]
        if len(values) < len(rows):
            found[name] = (None, np.zeros(0))
            continue
        resampled: Array = np.mean([_resampled(statistic, row, y, columns, draws) for row in rows], axis=0)
        found[name] = (statistics.fmean(values), resampled)
    return found


def _rows(part: Part, scorers: Sequence[Scores]) -> tuple[list[Array], Array, list[str]]:
    """What every scorer gave the rows that all of them scored, their ratings and groups."""
    there = [i for i, key in enumerate(part.keys) if all(key in scores for scores in scorers)]
    x = [np.array([scores[part.keys[i]] for i in there], np.float64) for scores in scorers]
    return x, part.ratings[there], [part.groups[i] for i in there]


def _statistic(name: str, x: Array, y: Array) -> Value:
    if name != ACCURACY:
        return correlation(name, x, y)
    if len(set(y.tolist())) < 2:
        return Value(None, "one class only")
    right = (x > 0.5) == (y > 0.5)
    return Value(float(right[y > 0.5].mean() + right[y <= 0.5].mean()) / 2)


def _resampled(name: str, x: Array, y: Array, columns: NDArray[np.int64], draws: GroupDraws) -> Array:
    """(R,) the statistic in every resample; NaN where it is undefined."""
    if name != ACCURACY:
        return resample(name, x, y, columns, draws)
    right, positive = ((x > 0.5) == (y > 0.5)).astype(np.float64), y > 0.5
    counts = draws.counts[:, columns].astype(np.float64)  # (R, n)
    with np.errstate(invalid="ignore"):
        sides = [counts[:, side] @ right[side] / counts[:, side].sum(axis=1) for side in (positive, ~positive)]
    return np.asarray((sides[0] + sides[1]) / 2, np.float64)
