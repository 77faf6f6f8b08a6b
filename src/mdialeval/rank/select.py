"""Ranking inside each language and keeping the best k per cent: arrays in, arrays out.

Scores of quality estimators are comparable only inside one (estimator, language) (Unbabel/COMET#260), so every language
is ranked alone.  ``n`` in the rule below counts the rows that enter the ranking.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mdialeval.errors import ConfigError
from mdialeval.rank.columns import Columns
from mdialeval.records import RankedTranslation, Translation

log = logging.getLogger(__name__)

Key = Literal["response", "context+response", "min"]
Ties = Literal["stable", "keep-all"]
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

    def kept(self, k: float | None = None) -> NDArray[np.bool_]:
        """(N,) whether each row is among the best k per cent of its language; the first k where None is given."""
        place = 0 if k is None else self.k.index(k)
        cuts = np.array([self.cuts[language][place] for language in self.columns.languages] or [0], np.int32)
        return (self.rank > 0) & (self.rank <= cuts[self.columns.language])

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
        rows = np.flatnonzero((columns.language == code) & (columns.left_out < 0))
        values = score[rows]
        if strata > 1:
            rank[rows] = stratified_ranks(values, length_bins(columns.length[rows], strata, ~np.isnan(values)), ties)
        else:
            rank[rows] = rank_scores(values, ties)
        numbers = values[~np.isnan(values)]
        cuts[language] = tuple(min(cut(len(rows), value), len(numbers)) for value in wanted)
        if len(numbers) > 1 and numbers.min() == numbers.max():
            constant.append(language)
            log.warning(
                "%s: all %d scores equal %.6g, so the ranking is the input order", language, len(numbers), numbers[0]
            )
        if missing := len(values) - len(numbers):
            log.warning(
                "%s: %d of %d rows have no score; they rank last and are dropped", language, missing, len(values)
            )
    return Selection(columns, wanted, score, rank, cuts, tuple(constant))


def rank_scores(scores: NDArray[np.float64], ties: Ties = "stable") -> NDArray[np.int32]:
    """Ranks from 1 (highest score), NaN last.

    >>> rank_scores(np.array([0.5, np.nan, 0.9, 0.5])).tolist()
    [2, 4, 1, 3]
    >>> rank_scores(np.array([0.5, np.nan, 0.9, 0.5]), "keep-all").tolist()
    [2, 4, 1, 2]
    """
    order = np.argsort(-scores, kind="stable")  # NumPy sorts NaN to the end
    rank = np.empty(len(scores), np.int32)
    places = np.arange(1, len(scores) + 1, dtype=np.int32)
    if ties == "keep-all" and len(scores):
        ordered = scores[order]
        first = np.concatenate([[True], (ordered[1:] != ordered[:-1])])
        places = np.maximum.accumulate(np.where(first, places, 0)).astype(np.int32)
    rank[order] = places
    return rank


def length_bins(length: NDArray[np.int32], bins: int, there: NDArray[np.bool_] | None = None) -> NDArray[np.int8]:
    """(N,) the quantile bin of every row by its length, shortest 0; bin sizes differ by one row at most.

    Rows of one length that fall on a border are divided by input order.

    Args:
        length: (N,) not negative.
        bins: how many, at most 100.
        there: (N,) the rows that are divided; all where None.  The others get bin -1.

    >>> length_bins(np.array([5, 1, 9, 5, 5, 2]), 3).tolist()
    [1, 0, 2, 1, 2, 0]
    """
    rows = np.arange(len(length)) if there is None else np.flatnonzero(there)
    found = np.full(len(length), -1, np.int8)
    order = rows[np.argsort(length[rows], kind="stable")]
    for place, part in enumerate(np.array_split(order, bins)):
        found[part] = place
    return found


def stratified_ranks(
    scores: NDArray[np.float64], stratum: NDArray[np.int8], ties: Ties = "stable"
) -> NDArray[np.int32]:
    """Ranks from 1, by the place inside a row's stratum first and by score second; NaN last.

    The best rows of all strata come first, then the second best of each, and so on: whatever k is, the best k per cent
    by this rank are the best k per cent of every stratum (to a row, where the strata are of one size), and the subsets
    of several k are nested.  Estimators' scores fall with the length of the source, and so a plain top k keeps mostly
    short turns; inside a stratum lengths are alike.

    >>> stratified_ranks(np.array([0.9, 0.8, 0.7, 0.1, 0.3, 0.2]), np.array([0, 0, 0, 1, 1, 1], np.int8)).tolist()
    [1, 3, 5, 6, 2, 4]
    """
    place = np.zeros(len(scores), np.int32)
    for code in np.unique(stratum[~np.isnan(scores)]):
        rows = np.flatnonzero((stratum == code) & ~np.isnan(scores))
        place[rows] = rank_scores(scores[rows], ties)
    place[np.isnan(scores)] = np.iinfo(np.int32).max
    order = np.lexsort((-scores, place))  # stable: the input order decides last
    rank = np.empty(len(scores), np.int32)
    places = np.arange(1, len(scores) + 1, dtype=np.int32)
    if ties == "keep-all":
        by_place, by_score = place[order], scores[order]
        first = np.ones(len(scores), bool)
        first[1:] = (by_place[1:] != by_place[:-1]) | (by_score[1:] != by_score[:-1])
        places = np.maximum.accumulate(np.where(first, places, 0)).astype(np.int32)
    rank[order] = places
    return rank


def ranking_key(columns: Columns, key: Key, context_turns: int) -> NDArray[np.float64]:
    """(N,) what each row is ranked by.

    ``response`` is the row's own score, as published.  ``context+response`` is the mean, and ``min`` the lowest, of the
    row's own score and those of up to ``context_turns`` turns before it in the same item.  Where one of these turns
    has no score, there is no key (a mean over what happens to be there would be another quantity).
    """
    score = columns.score
    if key == "response" or not len(score):
        return score.copy()
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
