"""From predictions and rated examples to agreements: one row a language, scorer, dimension, rating and statistic.

Beside each requested statistic come rows that keep the number honest:

- ``acc_eq_chance``, ``acc_eq_calibrated_chance``: what a scorer without skill reaches on these ties;
- ``<statistic>_missing_worst``, ``<statistic>_missing_best``: where rows are not scored, the value if every missing
  score had been the one of the scorer's observed range that disagrees, or agrees, most with its rating;
- ``system_<statistic>``: of the systems' mean scores, where at least five systems were rated;
- language ``mean``: the mean over languages, which says how many languages were skipped.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mdialeval.agreement.correlations import Array, correlation, p_value, undefined
from mdialeval.agreement.intervals import GroupDraws, Interval, draw_groups, percentile, resample, too_few
from mdialeval.agreement.pairs import calibrated_chance, chance
from mdialeval.agreement.systems import MIN_SYSTEMS, resample_systems, system_means
from mdialeval.errors import DataError
from mdialeval.records import SCORED, Agreement, Example, Prediction

log = logging.getLogger(__name__)

DEFAULT_STATISTICS = ("pearson", "spearman", "kendall_tau_b")
CHANCE_PERMUTATIONS = 50
MEAN = "mean"
"""The language of rows that average over languages."""

Key = tuple[str, str]  # example id, language
Source = tuple[str, str]  # scorer, what it measures


class Cell(NamedTuple):
    """What one scorer said on one rating in one language, on rated and scored rows.

    Attributes:
        x, y: (n_scored,) predictions and ratings.
        columns: (n_scored,) each row's column among the group draws.
        systems: (n_scored,) who produced each response.
        n: rated rows.
        missing: (n - n_scored,) ratings of the rows without a score.
    """

    x: Array
    y: Array
    columns: npt.NDArray[np.int64]
    systems: tuple[str, ...]
    n: int
    missing: Array


def correlate(
    predictions: Iterable[Prediction],
    examples: Iterable[Example],
    *,
    dataset: str,
    statistics: Sequence[str] = DEFAULT_STATISTICS,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 13,
) -> list[Agreement]:
    """How far each scorer agrees with each rating, per language and in the mean over languages.

    Predictions and examples are joined by (example id, language); every statistic is computed on the rated and scored
    rows alone, and ``n``, ``n_scored`` say how many those are.  All intervals rest on the same draws of dialogue
    groups, across languages.  Each dimension of a scorer is compared with every rated dimension of the data set.

    Args:
        predictions: any number of scorers and dimensions.
        examples: the rated set, in any number of languages.
        dataset: its name in the rows.
        statistics: of ``correlations.STATISTICS``.
        resamples: bootstrap resamples; 0 leaves the intervals out.
        confidence: of the intervals, in (0, 1).

    Raises:
        DataError: nothing is rated, a scorer's rows join with no example (ids of both sides are shown), an id occurs
            twice, or a number is not finite.
    """
    rated = index(examples)
    dimensions = sorted({d for e in rated.values() for d in e.ratings})
    if not dimensions:
        raise DataError(f"data set {dataset!r}: none of its {len(rated)} examples is rated")
    scorers = by_scorer(predictions)
    if not scorers:
        raise DataError(f"data set {dataset!r}: no predictions to compare with")
    draws = draw_groups([group_of(e) for e in rated.values()], resamples, seed)
    rows: list[Agreement] = []
    for (scorer, scorer_dimension), scored in scorers.items():
        _check_join(f"{scorer} ({scorer_dimension})", dataset, scored, rated)
        for dimension in dimensions:
            cells = _cells(scored, rated, dimension, draws)
            blank = Agreement(scorer, dataset, "", scorer_dimension, dimension, 0, 0, "", None)
            for statistic in statistics:
                rows.extend(_statistic_rows(statistic, cells, draws, confidence, seed, blank))
    return rows


def group_of(example: Example) -> str:
    """The dialogue an example belongs to: its group, else its English source, else itself."""
    return example.group or example.source_id or example.id


def index(examples: Iterable[Example]) -> dict[Key, Example]:
    """Rated examples by id and language.

    Raises:
        DataError: an id occurs twice in a language, or a rating is not finite.
    """
    rated: dict[Key, Example] = {}
    for example in examples:
        key = (example.id, example.language)
        if key in rated:
            raise DataError(f"example {example.id!r} occurs twice in {example.language}: ids are unique in a language")
        rated[key] = example
        for dimension, rating in example.ratings.items():
            if not math.isfinite(rating):
                raise DataError(f"example {example.id!r} ({example.language}) is rated {rating}", field=dimension)
    return rated


def by_scorer(predictions: Iterable[Prediction]) -> dict[Source, dict[Key, Prediction]]:
    """Predictions by who made them, then by id and language.

    Raises:
        DataError: an example scored twice, a score that is not finite or that contradicts its status.
    """
    scorers: dict[Source, dict[Key, Prediction]] = {}
    for p in predictions:
        who = (p.scorer, p.dimension)
        scored = scorers.setdefault(who, {})
        key = (p.example_id, p.language)
        if key in scored:
            raise DataError(f"{p.scorer} ({p.dimension}) scores example {p.example_id!r} in {p.language} twice")
        if (p.score is not None) != (p.status in SCORED):
            raise DataError(
                f"{p.scorer} ({p.dimension}), example {p.example_id!r}: score {p.score} with status {p.status!r}"
            )
        if p.score is not None and not math.isfinite(p.score):
            raise DataError(
                f"{p.scorer} ({p.dimension}), example {p.example_id!r} ({p.language}): the score is {p.score}; "
                "a failure is a status without a score"
            )
        scored[key] = p
    return scorers


def _check_join(who: str, dataset: str, scored: Mapping[Key, Prediction], rated: Mapping[Key, Example]) -> None:
    unmatched = [key for key in scored if key not in rated]
    if len(unmatched) == len(scored):
        raise DataError(
            f"none of the {len(scored)} predictions of {who} belongs to data set {dataset!r}: "
            f"predicted {_some(unmatched)}; rated {_some(list(rated))}"
        )
    if unmatched:
        log.warning("%s: %d predictions have no example in %s: %s", who, len(unmatched), dataset, _some(unmatched))


def _some(keys: Sequence[Key]) -> str:
    shown = ", ".join(f"{i!r} ({language})" for i, language in keys[:3])
    return shown + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")


def _cells(
    scored: Mapping[Key, Prediction], rated: Mapping[Key, Example], dimension: str, draws: GroupDraws
) -> dict[str, Cell]:
    """One cell a language in which anything is rated on the dimension."""
    by_language: dict[str, list[Example]] = {}
    for example in rated.values():
        if dimension in example.ratings:
            by_language.setdefault(example.language, []).append(example)
    cells = {}
    for language, rows in sorted(by_language.items()):
        scores = [p.score if (p := scored.get((e.id, language))) else None for e in rows]
        kept = [e for e, s in zip(rows, scores, strict=True) if s is not None]
        cells[language] = Cell(
            np.array([s for s in scores if s is not None], np.float64),
            np.array([e.ratings[dimension] for e in kept], np.float64),
            draws.columns([group_of(e) for e in kept]),
            tuple(e.system for e in kept),
            len(rows),
            np.array([e.ratings[dimension] for e, s in zip(rows, scores, strict=True) if s is None], np.float64),
        )
    return cells


def _statistic_rows(
    statistic: str, cells: Mapping[str, Cell], draws: GroupDraws, confidence: float, seed: int, blank: Agreement
) -> Iterator[Agreement]:
    """The rows of one statistic: per language, their companions, and the mean."""
    rows, resamples = [], {}
    for language, cell in cells.items():
        base = replace(blank, language=language, n=cell.n, n_scored=len(cell.x), statistic=statistic)
        row, resamples[language] = _row(base, cell, draws, confidence)
        rows.append(row)
        yield row
        if row.value is not None:
            yield from _companions(row, cell, seed)
        yield from _system_row(base, cell, draws, confidence)
    if len(rows) > 1:
        yield _mean(rows, resamples, confidence)


def _row(base: Agreement, cell: Cell, draws: GroupDraws, confidence: float) -> tuple[Agreement, Array]:
    """One language's row, and the resampled values that it and the mean rest on."""
    nothing = np.zeros(0)
    if not len(cell.x):
        return replace(base, reason="no row has a score"), nothing
    value, reason = correlation(base.statistic, cell.x, cell.y)
    if value is None:
        return replace(base, reason=reason), nothing
    interval = Interval(None, None)
    values = nothing
    if len(draws.counts) and (reason := too_few(len(np.unique(cell.columns)))):
        interval = Interval(None, None, reason)
    elif len(draws.counts):
        values = resample(base.statistic, cell.x, cell.y, cell.columns, draws)
        interval = percentile(values, confidence)
    low, high, reason = interval
    p = p_value(base.statistic, cell.x, cell.y)
    return replace(base, value=value, low=low, high=high, p_value=p, reason=reason), values


def _companions(row: Agreement, cell: Cell, seed: int) -> Iterator[Agreement]:
    """Chance beside pairwise accuracy, and bounds where rows are missing."""
    plain = replace(row, low=None, high=None, p_value=None)
    if row.statistic == "acc_eq":
        level = chance(cell.x, cell.y)
        yield replace(plain, statistic="acc_eq_chance", value=level, reason="all permutations of the ratings")
    elif row.statistic == "acc_eq_calibrated":
        level = calibrated_chance(cell.x, cell.y, CHANCE_PERMUTATIONS, seed)
        reason = f"{CHANCE_PERMUTATIONS} permutations of the ratings"
        yield replace(plain, statistic="acc_eq_calibrated_chance", value=level, reason=reason)
    if len(cell.missing):
        y = np.r_[cell.y, cell.missing]
        above = cell.missing > np.median(y)
        for name, when_above, when_below in (
            ("missing_worst", cell.x.min(), cell.x.max()),
            ("missing_best", cell.x.max(), cell.x.min()),
        ):
            x = np.r_[cell.x, np.where(above, when_above, when_below)]
            value, reason = correlation(row.statistic, x, y)
            reason = reason or f"if the {len(cell.missing)} rows without a score had one"
            yield replace(plain, statistic=f"{row.statistic}_{name}", value=value, reason=reason)


def _system_row(base: Agreement, cell: Cell, draws: GroupDraws, confidence: float) -> Iterator[Agreement]:
    """Agreement of the systems' means, where enough systems are named."""
    names = sorted(set(cell.systems))
    if len(names) < MIN_SYSTEMS or "" in names:
        return
    base = replace(base, statistic=f"system_{base.statistic}", n=len(names), n_scored=len(names))
    x, y = system_means(cell.x, cell.y, cell.systems)
    statistic = base.statistic.removeprefix("system_")
    value, reason = correlation(statistic, x, y)
    low = high = None
    if value is not None and len(draws.counts) and not (reason := too_few(len(np.unique(cell.columns)))):
        values = resample_systems(statistic, cell.x, cell.y, cell.systems, cell.columns, draws)
        low, high, reason = percentile(values, confidence)
    p = None if undefined(statistic, x, y) else p_value(statistic, x, y)
    yield replace(base, value=value, low=low, high=high, p_value=p, reason=reason)


def _mean(rows: Sequence[Agreement], resamples: Mapping[str, Array], confidence: float) -> Agreement:
    """The mean over the languages that have a value; its interval from the mean within each resample."""
    known = [row for row in rows if row.value is not None]
    skipped = [f"{row.language}: {row.reason}" for row in rows if row.value is None]
    reason = f"mean of {len(known)} of {len(rows)} languages"
    if skipped:
        reason += f"; {len(skipped)} skipped ({', '.join(skipped)})"
    first = rows[0]
    base = replace(
        first,
        language=MEAN,
        n=sum(row.n for row in rows),
        n_scored=sum(row.n_scored for row in rows),
        value=None,
        low=None,
        high=None,
        p_value=None,
        reason=reason,
    )
    if not known:
        return base
    drawn = [resamples[row.language] for row in known]
    low = high = None
    if all(len(values) for values in drawn):
        low, high, problem = percentile(np.mean(drawn, axis=0), confidence)
        reason += f"; {problem}" if problem else ""
    elif few := [row.language for row in known if row.reason]:
        reason += f"; no interval, since there is none for {', '.join(few)}"
    value = float(np.mean([row.value for row in known if row.value is not None]))
    return replace(base, value=value, low=low, high=high, reason=reason)
