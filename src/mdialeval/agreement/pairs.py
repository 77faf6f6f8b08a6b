"""Counting concordant, discordant and tied pairs, in many resamples at once.

Kendall's tau-b and pairwise accuracy both rest on these counts.  The order of the values is the same in every
resample and only the multiplicities differ, so the sorting is done once and each resample costs O(n log L), with L
the number of distinct ratings.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

BLOCK = 1024
"""Rows of a pair matrix held at once."""


class Levels(NamedTuple):
    """The distinct values of one side.

    Attributes:
        codes: (n,) the level of each row, 0 lowest.
        order: (n,) rows sorted by level.
        starts: (L,) where each level begins in ``order``.
    """

    codes: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, values: npt.NDArray[Any]) -> Levels:
        """The levels of (n,) values."""
        codes = np.unique(values, return_inverse=True)[1].astype(np.int64)
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(codes[order]) > 0])
        return cls(codes, order, starts)

    def totals(self, weights: Array) -> Array:
        """(L, R) how many drawn rows each level has, from (n, R) multiplicities."""
        sums: Array = np.add.reduceat(weights[self.order], self.starts, axis=0)
        return sums


class Pairs(NamedTuple):
    """Both sides' levels."""

    x: Levels
    y: Levels

    @classmethod
    def of(cls, x: Array, y: Array) -> Pairs:
        """The levels of predictions and ratings, both (n,)."""
        return cls(Levels.of(x), Levels.of(y))


class PairCounts(NamedTuple):
    """(R,) counts of unordered pairs of drawn rows.

    Attributes:
        pairs: all pairs.
        concordant, discordant: pairs that no side ties.
        x_tied, y_tied: pairs that a side ties, those tied on both sides included.
        both_tied: pairs tied on both sides, copies included.
        copies: pairs of two draws of one row, which compare nothing.
    """

    pairs: Array
    concordant: Array
    discordant: Array
    x_tied: Array
    y_tied: Array
    both_tied: Array
    copies: Array


def pair_counts(x: Array, y: Array, weights: Array) -> PairCounts:
    """The pair counts of predictions x and ratings y (n,) in resamples of multiplicities (n, R).

    >>> counts = pair_counts(np.array([1.0, 2, 2, 3]), np.array([1.0, 1, 2, 0]), np.ones((4, 1)))
    >>> [int(c[0]) for c in counts]
    [6, 1, 3, 1, 1, 0, 0]
    """
    sides = Pairs.of(x, y)
    joint = Levels.of(sides.x.codes * (sides.y.codes.max() + 1) + sides.y.codes)
    everything = _choose_two(weights.sum(axis=0))
    x_tied = _choose_two(sides.x.totals(weights)).sum(axis=0)
    y_tied = _choose_two(sides.y.totals(weights)).sum(axis=0)
    both_tied = _choose_two(joint.totals(weights)).sum(axis=0)
    discordant = _discordant(sides, weights)
    concordant = everything - x_tied - y_tied + both_tied - discordant
    copies = _choose_two(weights).sum(axis=0)
    return PairCounts(everything, concordant, discordant, x_tied, y_tied, both_tied, copies)


def _choose_two(n: Array) -> Array:
    pairs: Array = n * (n - 1) / 2
    return pairs


def _discordant(sides: Pairs, weights: Array) -> Array:
    """(R,) pairs that the two sides order against each other: weighted inversions, one bit of the ratings at a time.

    Rows are sorted by x, ties by y, so that a pair is discordant exactly when the later row has the smaller y.  Two
    different y share their high bits down to one bit where the larger has 1 and the smaller 0; each such pair is
    counted at that bit, among the rows of equal high bits.
    """
    few, many = (sides.y, sides.x) if len(sides.y.starts) <= len(sides.x.starts) else (sides.x, sides.y)
    order = np.lexsort((few.codes, many.codes))
    codes, drawn = few.codes[order], weights[order]
    total = np.zeros(weights.shape[1])
    for bit in range(int(codes.max()).bit_length() - 1, -1, -1):
        high = codes >> (bit + 1)
        block = np.argsort(high, kind="stable")
        ones = (codes[block] >> bit & 1).astype(bool)
        larger = np.zeros((int(ones.sum()) + 1, weights.shape[1]))
        np.cumsum(drawn[block[ones]], axis=0, out=larger[1:])  # drawn rows with the bit set, up to each place
        passed = np.r_[0, np.cumsum(ones)]  # (n + 1,) how many of them lie before a place
        first = np.flatnonzero(np.r_[True, np.diff(high[block]) > 0])
        start_of = np.repeat(first, np.diff(np.r_[first, len(codes)]))  # (n,) where a row's block begins
        zeros = np.flatnonzero(~ones)
        before = larger[passed[zeros]]  # rows of larger y that come earlier ...
        before -= larger[passed[start_of[zeros]]]  # ... in the same block
        total += np.einsum("nr,nr->r", drawn[block[zeros]], before)
    return total


class Calibration(NamedTuple):
    """The tie threshold that a scorer of real numbers needs to be comparable with ratings full of ties.

    Attributes:
        epsilon: two scores that differ by at most this are tied.
        accuracy: ``acc_eq`` under that threshold, the largest that any threshold reaches.
    """

    epsilon: float
    accuracy: float


def calibrate(x: Array, y: Array) -> Calibration:
    """Tie calibration (Deutsch et al. 2023): the threshold on score differences that maximises pairwise accuracy.

    O(n^2 log n) time and O(n^2) memory.  The threshold is chosen on the same rows, as published, so a scorer with
    real-valued scores is not punished for never tying; compare only with the equally calibrated chance level.

    >>> calibrate(np.array([0.1, 0.12, 0.5, 0.9]), np.array([1.0, 1, 2, 3]))
    Calibration(epsilon=0.02, accuracy=1.0)
    """
    left, right = np.triu_indices(len(x), 1)
    order, gaps, last = _by_gap(x, left, right)
    direction = np.sign(x[left] - x[right])[order]
    return _best_threshold(gaps, last, direction, np.sign(y[left] - y[right])[order])


def calibrated_chance(x: Array, y: Array, permutations: int, seed: int) -> float:
    """Mean calibrated accuracy when the ratings are shuffled: what a scorer without any skill reaches."""
    left, right = np.triu_indices(len(x), 1)
    order, gaps, last = _by_gap(x, left, right)
    direction = np.sign(x[left] - x[right])[order]
    left, right = left[order], right[order]
    random = np.random.default_rng(seed)
    total = 0.0
    for _ in range(permutations):
        shuffled = random.permutation(y)
        total += _best_threshold(gaps, last, direction, np.sign(shuffled[left] - shuffled[right])).accuracy
    return total / permutations


def chance(x: Array, y: Array) -> float:
    """Mean ``acc_eq`` over all permutations of the ratings, in closed form.

    A random pairing ties both sides with the product of their tie rates, and orders an untied pair right half the time.

    >>> chance(np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 3, 4]))
    0.5
    """
    counts = pair_counts(x, y, np.ones((len(x), 1)))
    x_rate, y_rate = float((counts.x_tied / counts.pairs)[0]), float((counts.y_tied / counts.pairs)[0])
    return x_rate * y_rate + (1 - x_rate) * (1 - y_rate) / 2


def _by_gap(x: Array, left: Any, right: Any) -> tuple[Any, Array, Any]:
    """Pairs by rising score difference: their order, the differences, and where a run of equal differences ends."""
    gaps = np.round(np.abs(x[left] - x[right]), 12)  # 0.3 - 0.2 and 0.2 - 0.1 are one threshold
    order = np.argsort(gaps, kind="stable")
    gaps = gaps[order]
    return order, gaps, np.flatnonzero(np.r_[np.diff(gaps) > 0, True])


def _best_threshold(gaps: Array, last: Any, direction: Array, gold: Array) -> Calibration:
    """The best of all thresholds: widening it turns pairs from ordered into tied, nearest first."""
    ordered_right = (direction == gold) & (gold != 0)
    right = ordered_right.sum() + np.cumsum((gold == 0).astype(np.int64) - ordered_right)[last]
    if gaps[0] > 0:  # no scores are tied: the threshold 0 leaves every pair ordered
        right, thresholds = np.r_[ordered_right.sum(), right], np.r_[0.0, gaps[last]]
    else:
        thresholds = gaps[last]
    best = int(np.argmax(right))
    return Calibration(float(thresholds[best]), float(right[best] / len(gaps)))


def agreeing_pairs(x: Array, y: Array, epsilon: float, weights: Array) -> Array:
    """(R,) share of pairs that both sides order or tie alike, where scores within epsilon are tied.

    Pairs of two draws of one row compare nothing and are left out.  Ties by threshold are not transitive, so this
    needs all pairs: O(R n^2), a block of rows at a time.
    """
    right = np.zeros(weights.shape[1])
    narrow = weights.astype(np.float32)
    for start in range(0, len(x), BLOCK):
        rows = slice(start, start + BLOCK)
        gap = np.round(x[rows, None] - x[None, :], 12)
        direction = np.where(np.abs(gap) <= epsilon, 0.0, np.sign(gap))
        alike = (direction == np.sign(y[rows, None] - y[None, :])).astype(np.float32)
        right += np.einsum("nr,nr->r", weights[rows], (alike @ narrow).astype(np.float64))
    squares = (weights * weights).sum(axis=0)  # a row and its copies were counted as agreeing
    total = weights.sum(axis=0)
    shares: Array = (right - squares) / (total * total - squares)
    return shares
