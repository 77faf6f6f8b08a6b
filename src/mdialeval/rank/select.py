"""Ranking inside each language and keeping the best k per cent: arrays in, arrays out.

Scores of quality estimators are comparable only inside one (estimator, language) (Unbabel/COMET#260), so every language
is ranked alone.  ``n`` in the rule below counts the rows that enter the ranking.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mdialeval.errors import ConfigError
from mdialeval.rank.columns import Columns
from mdialeval.records import RankedTranslation, Translation

log = logging.getLogger(__name__)

Key = Literal["response", "context+response", "min"]
Ties = Literal["stable", "keep-all"]
_RANGES, _RANGE_ROWS, _SAMPLE = 32, 50_000, 8192
KEPT, BELOW_CUT, NOT_A_NUMBER = "kept", "below_cut", "not_a_number"


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Every row's place.

    Attributes:
        k: the percentages asked for, as given; the first one decides ``kept`` and the reasons.
        score: (N,) the ranking key, NaN where there is none.
        rank: (N,) int32, 1 is best inside its language, 0 where the row was left out before ranking; with strata the
            best rows of all strata come first (``stratified_ranks``).
        cuts: language -> one cut rank for each k; a row is kept at that k where ``0 < rank <= cut``.
        constant: languages in which two rows or more were ranked and all keys are equal.
    """

    columns: Columns
    k: tuple[float, ...]
    score: NDArray[np.float64]
    rank: NDArray[np.int32]
    cuts: Mapping[str, tuple[int, ...]]
    constant: tuple[str, ...]

    def kept(self, k: float | None = None, rows: slice = slice(None)) -> NDArray[np.bool_]:
        """(rows,) whether each row is among the best k per cent of its language.

        Args:
            k: one of those asked for; the first where None.
            rows: only these rows.
        """
        place = 0 if k is None else self.k.index(k)
        cuts = [self.cuts[language][place] for language in self.columns.languages] or [0]
        rank = self.rank[rows]
        last = cuts[0] if len(cuts) == 1 else np.array(cuts, np.int32)[self.columns.language[rows]]
        return (rank > 0) & (rank <= last)

    def reason(self, row: int) -> str:
        """Why a row was kept or dropped at the first k."""
        columns = self.columns
        if self.rank[row] == 0:
            return columns.reasons[int(columns.left_out[row])]
        if math.isnan(self.score[row]):
            return NOT_A_NUMBER
        return KEPT if self.rank[row] <= self.cuts[columns.languages[int(columns.language[row])]][0] else BELOW_CUT

    def record(self, row: int, translation: Translation) -> RankedTranslation:
        """The record of a row, in which its text meets its place again."""
        score, rank, reason = float(self.score[row]), int(self.rank[row]), self.reason(row)
        return RankedTranslation(
            translation, None if math.isnan(score) else score, rank or None, reason == KEPT, reason
        )


def cut(n: int, k: float) -> int:
    """How many of n rows are kept at k per cent: ``max(1, ceil(n * k / 100))``, computed without rounding errors.

    Raises:
        ConfigError: k is not in (0, 100].

    >>> [cut(10, k) for k in (5, 10, 11, 100)], cut(500, 2.2), cut(0, 50)
    ([1, 1, 2, 10], 11, 0)
    """
    check_k([k])
    return max(1, math.ceil(n * Fraction(str(k)) / 100)) if n else 0


def check_k(k: Sequence[float]) -> None:
    """Percentages must be in (0, 100] and at least one.

    Raises:
        ConfigError: names every k that is not.
    """
    wrong = [f"rank.k is {value}: it must be above 0 and at most 100 (per cent)" for value in k if not 0 < value <= 100]
    if wrong or not k:
        raise ConfigError(wrong or "rank.k is an empty list: name at least one percentage")


def select(
    columns: Columns,
    k: float | Sequence[float] = 50.0,
    *,
    key: Key = "response",
    context_turns: int = 4,
    ties: Ties = "stable",
    strata: int = 1,
) -> Selection:
    """Rank every language and find its cuts; the subsets of several k are nested.

    Rows that were left out (flags, empty, failed) do not enter the ranking.  A key that is not a number ranks last, is
    counted, and is never kept.

    Args:
        columns: the rows.
        k: one percentage or several, in (0, 100].
        key: what is ranked; see ``ranking_key``.
        context_turns: how many turns before the row count, for the other two keys.
        ties: ``stable`` breaks them by input order; with ``keep-all`` equal rows share the best of their ranks, so
            that all of them are kept where one is.
        strata: bins of equal size by source length; see ``stratified_ranks``.
    """
    wanted = (float(k),) if isinstance(k, int | float) else tuple(float(value) for value in k)
    check_k(wanted)
    score = ranking_key(columns, key, context_turns)
    rank = np.zeros(len(columns), np.int32)
    cuts: dict[str, tuple[int, ...]] = {}
    constant = []
    for code, language in enumerate(columns.languages):
        ranked = (columns.language == code) & (columns.left_out < 0)
        numbers = ranked & ~np.isnan(score)
        n, scored = int(np.count_nonzero(ranked)), int(np.count_nonzero(numbers))
        if strata > 1:
            stratified_ranks(score, length_bins(columns.length, strata, numbers), ranked, ties, rank)
        else:
            rank_scores(score, ties, ranked, rank)
        cuts[language] = tuple(min(cut(n, value), scored) for value in wanted)
        low, high = np.min(score, where=numbers, initial=math.inf), np.max(score, where=numbers, initial=-math.inf)
        if scored > 1 and low == high:
            constant.append(language)
            log.warning("%s: all %d scores equal %.6g, so the ranking is the input order", language, scored, low)
        if n > scored:
            log.warning("%s: %d of %d rows have no score; they rank last and are dropped", language, n - scored, n)
    return Selection(columns, wanted, score, rank, cuts, tuple(constant))


def rank_scores(
    scores: NDArray[np.float64],
    ties: Ties = "stable",
    among: NDArray[np.bool_] | None = None,
    out: NDArray[np.int32] | None = None,
) -> NDArray[np.int32]:
    """Ranks from 1 (highest score), NaN last.

    Sorted are some tens of ranges of scores, one after the other, so that the memory stays that of the arrays given.

    Args:
        scores: (N,).
        ties: see ``select``.
        among: (N,) which rows are ranked; all where None.
        out: (N,) where their ranks go; the others are not touched.  New, 0 for the others, where None.

    >>> rank_scores(np.array([0.5, np.nan, 0.9, 0.5])).tolist()
    [2, 4, 1, 3]
    >>> rank_scores(np.array([0.5, np.nan, 0.9, 0.5]), "keep-all").tolist()
    [2, 4, 1, 2]
    """
    among = np.ones(len(scores), bool) if among is None else among
    out = np.zeros(len(scores), np.int32) if out is None else out
    done = 0
    for rows in _ranges(scores, among):
        values = scores[rows]
        order = np.argsort(-values, kind="stable")
        places = np.arange(done + 1, done + len(rows) + 1, dtype=np.int32)
        if ties == "keep-all" and len(rows):
            ordered = values[order]
            first = np.concatenate([[True], (ordered[1:] != ordered[:-1])])
            places = np.maximum.accumulate(np.where(first, places, 0)).astype(np.int32)
        out[rows[order]] = places
        done += len(rows)
    return out


def _ranges(scores: NDArray[np.float64], among: NDArray[np.bool_]) -> Iterator[NDArray[np.int64]]:
    """Row numbers in input order: those with the highest scores first, of about one size, last those that are NaN."""
    sample = scores[:: max(1, len(scores) // _SAMPLE)]
    sample = sample[np.isfinite(sample)]
    parts = min(_RANGES, len(scores) // _RANGE_ROWS + 1)
    inner = np.linspace(1, 0, parts + 1)[1:-1]
    borders = np.unique(np.quantile(sample, inner))[::-1] if len(sample) and len(inner) else np.empty(0)
    upper = math.inf
    for border in borders:
        yield np.flatnonzero(among & (scores > border) & (scores <= upper))
        upper = border
    yield np.flatnonzero(among & (scores <= upper))
    yield np.flatnonzero(among & np.isnan(scores))


def length_bins(length: NDArray[Any], bins: int, there: NDArray[np.bool_] | None = None) -> NDArray[np.int8]:
    """(N,) the quantile bin of every row by its length, shortest 0; bin sizes differ by one row at most.

    Rows of one length that fall on a border are divided by input order.

    Args:
        length: (N,) not negative.
        bins: how many, at most 100.
        there: (N,) the rows that are divided; all where None.  The others get bin -1.

    >>> length_bins(np.array([5, 1, 9, 5, 5, 2]), 3).tolist()
    [1, 0, 2, 1, 2, 0]
    """
    there = np.ones(len(length), bool) if there is None else there
    counts = np.zeros(int(np.max(length, where=there, initial=0)) + 1, np.int64)
    for start in range(0, len(length), _RANGE_ROWS):  # bincount makes eight bytes of every length
        part = slice(start, start + _RANGE_ROWS)
        counts += np.bincount(length[part][there[part]], minlength=len(counts))
    ends = np.cumsum(counts)
    starts, total = ends - counts, int(counts.sum())
    sizes = np.full(bins, total // bins) + (np.arange(bins) < total % bins)
    borders = np.cumsum(sizes)[:-1]
    first, last = (np.searchsorted(borders, at, side="right") for at in (starts, ends - 1))
    found = np.full(len(length), -1, np.int8)
    np.copyto(found, np.append(first, -1).astype(np.int8)[np.minimum(length, len(first))], where=there)
    for size in np.flatnonzero((first != last) & (counts > 0)):  # at most bins - 1 lengths
        rows = np.flatnonzero(there & (length == size))
        found[rows] = np.searchsorted(borders, starts[size] + np.arange(len(rows)), side="right")
    return found


def stratified_ranks(
    scores: NDArray[np.float64],
    stratum: NDArray[np.int8],
    among: NDArray[np.bool_],
    ties: Ties = "stable",
    out: NDArray[np.int32] | None = None,
) -> NDArray[np.int32]:
    """Ranks from 1, by the place inside a row's stratum first and by score second; NaN last.

    The best rows of all strata come first, then the second best of each, and so on: whatever k is, the best k per cent
    by this rank are the best k per cent of every stratum (to a row, where the strata are of one size), and the subsets
    of several k are nested.  Estimators' scores fall with the length of the source, and so a plain top k keeps mostly
    short turns; inside a stratum lengths are alike.

    Args:
        scores: (N,).
        stratum: (N,) -1 where a row has no score.
        among, ties, out: see ``rank_scores``.

    >>> scores, stratum = np.array([0.9, 0.8, 0.7, 0.1, 0.3, 0.2]), np.array([0, 0, 0, 1, 1, 1], np.int8)
    >>> stratified_ranks(scores, stratum, np.ones(6, bool)).tolist()
    [1, 3, 5, 6, 2, 4]
    """
    out = np.zeros(len(scores), np.int32) if out is None else out
    place = np.zeros(len(scores), np.int32)
    for code in range(int(stratum.max(initial=-1)) + 1):
        rank_scores(scores, ties, among & (stratum == code), place)
    rows = np.flatnonzero(among & (place > 0))
    order = rows[np.lexsort((-scores[rows], place[rows]))]  # stable: the input order decides last
    places = np.arange(1, len(rows) + 1, dtype=np.int32)
    if ties == "keep-all" and len(rows):
        by_place, by_score = place[order], scores[order]
        first = np.concatenate([[True], (by_place[1:] != by_place[:-1]) | (by_score[1:] != by_score[:-1])])
        places = np.maximum.accumulate(np.where(first, places, 0)).astype(np.int32)
    out[order] = places
    missing = np.flatnonzero(among & (place == 0))
    out[missing] = np.arange(len(rows) + 1, len(rows) + len(missing) + 1)
    return out


def ranking_key(columns: Columns, key: Key, context_turns: int) -> NDArray[np.float64]:
    """(N,) what each row is ranked by.

    ``response`` is the row's own score, as published.  ``context+response`` is the mean, and ``min`` the lowest, of the
    row's own score and those of up to ``context_turns`` turns before it in the same item.  Where one of these turns
    has no score, there is no key (a mean over what happens to be there would be another quantity).
    """
    score = columns.score
    if key == "response" or not len(score):
        return score
    previous = _previous_turn(columns)
    total, lowest, count = score.copy(), score.copy(), np.ones(len(score), np.int32)
    at = previous.copy()
    for _ in range(context_turns):
        there = at >= 0
        if not there.any():
            break
        total[there] += score[at[there]]
        lowest[there] = np.minimum(lowest[there], score[at[there]])  # NaN stays NaN
        count[there] += 1
        at[there] = previous[at[there]]
    return lowest if key == "min" else total / count


def _previous_turn(columns: Columns) -> NDArray[np.int64]:
    """(N,) the row that holds the turn before, -1 at the start of an item.  A missing turn is bridged."""
    order = np.lexsort((columns.turn, columns.item))
    item = columns.item[order]
    previous = np.full(len(columns), -1, np.int64)
    same = item[1:] == item[:-1]
    previous[order[1:][same]] = order[:-1][same]
    return previous
