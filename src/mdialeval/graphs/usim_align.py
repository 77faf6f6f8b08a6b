"""Token alignment for USim: sentence ends, the breaks that two texts share, and a one-to-one map inside each stretch.

The map is the published one by default (Choshen and Abend, NAACL 2018, as coded: optimal assignment over character edit
distance plus relative displacement); the other methods are options because the published one has known weaknesses: a
long word is dearer than a short one, and everything is matched with something.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist
from scipy.optimize import linear_sum_assignment

AlignmentMethod = Literal["published", "monotone", "lemma"]
UNALIGNED = -1
LEMMA_LIMIT = 0.4
"""Relative edit distance (of the longer word) up to which ``lemma`` takes two words for forms of one."""

_NOT_WORD = re.compile(r"\W+")


def align_tokens(
    first: Sequence[str],
    second: Sequence[str],
    method: AlignmentMethod = "published",
    first_ends: Sequence[int] = (),
    second_ends: Sequence[int] = (),
) -> tuple[int, ...]:
    """For each token of ``first`` its partner in ``second``, or ``UNALIGNED``; no token is used twice.

    Args:
        method: ``published``: cheapest assignment, cost = edit distance in characters + displacement / longer length,
            unmatched tokens of the longer side cost nothing; ``monotone``: word-level edit distance, so partners keep
            their order; ``lemma``: as published, but only pairs whose relative edit distance is small enough count.
        first_ends, second_ends: positions of the last tokens of sentences; alignment never crosses a shared break.

    >>> align_tokens("a b c".split(), "a c".split())
    (0, -1, 1)
    >>> align_tokens("x y".split(), "y x".split())
    (1, 0)
    """
    a, b = [t.lower() for t in first], [t.lower() for t in second]
    found = [UNALIGNED] * len(a)
    start_a = start_b = 0
    for end_a, end_b in common_breaks(a, b, first_ends, second_ends):
        align = _monotone if method == "monotone" else _assigned
        for i, j in align(a[start_a : end_a + 1], b[start_b : end_b + 1], method):
            found[start_a + i] = start_b + j
        start_a, start_b = end_a + 1, end_b + 1
    return tuple(found)


def inverted(mapping: Sequence[int], length: int) -> tuple[int, ...]:
    """The map in the other direction.

    >>> inverted((2, -1, 0), 3)
    (2, -1, 0)
    """
    back = [UNALIGNED] * length
    for i, j in enumerate(mapping):
        if j != UNALIGNED:
            back[j] = i
    return tuple(back)


def common_breaks(
    first: Sequence[str], second: Sequence[str], first_ends: Sequence[int], second_ends: Sequence[int]
) -> list[tuple[int, int]]:
    """Pairs of positions after which both texts break; the last positions of both texts are always the last pair.

    Two sentence ends belong together where the last words before them agree; where only the next end of one side
    agrees, its sentences are merged; where neither does, both ends are passed over.
    """
    if not first or not second:
        return []
    ends_a = [e for e in first_ends if e < len(first) - 1]
    ends_b = [e for e in second_ends if e < len(second) - 1]
    words_a, words_b = [_last_word(first, e) for e in ends_a], [_last_word(second, e) for e in ends_b]
    breaks: list[tuple[int, int]] = []
    i = j = 0
    while i < len(ends_a) and j < len(ends_b):
        if words_a[i] == words_b[j]:
            breaks.append((ends_a[i], ends_b[j]))
            i, j = i + 1, j + 1
        elif i + 1 < len(ends_a) and words_a[i + 1] == words_b[j]:
            i += 1
        elif j + 1 < len(ends_b) and words_a[i] == words_b[j + 1]:
            j += 1
        else:
            i, j = i + 1, j + 1
    return [*breaks, (len(first) - 1, len(second) - 1)]


def _last_word(tokens: Sequence[str], end: int) -> str:
    for position in range(end, -1, -1):
        word = _NOT_WORD.sub("", tokens[position])
        if word:
            return word
    return ""


def _assigned(a: Sequence[str], b: Sequence[str], method: AlignmentMethod) -> Iterator[tuple[int, int]]:
    longer = max(len(a), len(b))
    if not a or not b:
        return
    edits = cdist(a, b, scorer=Levenshtein.distance, dtype=np.int32).astype(np.float64)
    lengths = np.maximum.outer([len(t) for t in a], [len(t) for t in b])
    shift = np.abs(np.subtract.outer(np.arange(len(a)), np.arange(len(b)))) / longer
    if method == "lemma":
        far = edits > LEMMA_LIMIT * lengths
        rows, columns = linear_sum_assignment(np.where(far, 1.0, edits / np.maximum(lengths, 1)) * 2 + shift)
        yield from ((int(i), int(j)) for i, j in zip(rows, columns, strict=True) if not far[i, j])
        return
    yield from _published(edits + shift)


def _published(cost: npt.NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """Assignment with the longer side as rows of a square matrix: of equally cheap ones nearly always the published."""
    n, m = cost.shape
    square = np.zeros((max(n, m), max(n, m)))
    square[: max(n, m), : min(n, m)] = cost if n >= m else cost.T
    rows, columns = linear_sum_assignment(square)
    for long, short in zip(rows.tolist(), columns.tolist(), strict=True):
        if short < min(n, m):
            yield (long, short) if n >= m else (short, long)


def _monotone(a: Sequence[str], b: Sequence[str], _: AlignmentMethod) -> Iterator[tuple[int, int]]:
    """Word-level edit distance; replacing a word costs its relative edit distance, dropping or adding one costs 1/2."""
    cost = _relative(a, b)
    best = np.zeros((len(a) + 1, len(b) + 1))
    best[:, 0], best[0, :] = np.arange(len(a) + 1) / 2, np.arange(len(b) + 1) / 2
    steps = np.arange(len(b) + 1) / 2
    for i in range(1, len(a) + 1):
        row = np.minimum(best[i - 1, 1:] + 0.5, best[i - 1, :-1] + cost[i - 1])
        row = np.concatenate(([best[i, 0]], row)) - steps
        best[i] = np.minimum.accumulate(row) + steps  # insertions of any length in one pass
    i, j, pairs = len(a), len(b), []
    while i and j:
        if np.isclose(best[i, j], best[i - 1, j - 1] + cost[i - 1, j - 1]):
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif np.isclose(best[i, j], best[i - 1, j] + 0.5):
            i -= 1
        else:
            j -= 1
    yield from reversed(pairs)


def _relative(a: Sequence[str], b: Sequence[str]) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = cdist(a, b, scorer=Levenshtein.normalized_distance, dtype=np.float64)
    return found
