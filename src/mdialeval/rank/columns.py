"""What ranking needs to know about every row, in about thirty bytes a row: scores in memory, texts on disk."""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mdialeval.records import Translation
from mdialeval.translate.checks import FLAGS

LEFT_OUT = frozenset(name for name, kind in FLAGS.items() if kind.policy != "keep")
"""The flags that keep a translation out of the ranking unless the caller says otherwise."""


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Rows as arrays of the same length N, in input order.

    Attributes:
        score: (N,) float64, higher is better; NaN where the row was left out or could not be estimated.
        language: (N,) int16, index into ``languages``.
        item: (N,) int32, the same number for the turns of one item in one language, which follow one another.
        turn: (N,) int32, index in the item.
        length: (N,) int32, characters of the source.
        left_out: (N,) int16, -1 where the row is ranked, else index into ``reasons``.
        truncated: (N,) bool, whether the estimator saw only a part of the row.
        languages: canonical codes, in order of appearance.
        reasons: why rows were left out, in order of appearance.
    """

    score: NDArray[np.float64]
    language: NDArray[np.int16]
    item: NDArray[np.int32]
    turn: NDArray[np.int32]
    length: NDArray[np.int32]
    left_out: NDArray[np.int16]
    truncated: NDArray[np.bool_]
    languages: tuple[str, ...]
    reasons: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.score)


class ColumnsBuilder:
    """Takes rows one at a time and gives ``Columns``.

    The turns of an item must follow one another inside their language (languages may be interleaved); that is how the
    shards of ``translate`` hold them.

    Args:
        leave_out: flags whose rows do not enter the ranking.
        higher_is_better: direction of the estimator's scores; they are turned so that higher is better.
    """

    def __init__(self, leave_out: Collection[str] = LEFT_OUT, *, higher_is_better: bool = True) -> None:
        self._leave_out = frozenset(leave_out)
        self._sign = 1.0 if higher_is_better else -1.0
        self._score, self._language, self._item = array("d"), array("h"), array("i")
        self._turn, self._length, self._left_out = array("i"), array("i"), array("h")
        self._truncated = bytearray()
        self._languages: dict[str, int] = {}
        self._reasons: dict[str, int] = {}
        self._last: dict[str, tuple[str, int]] = {}  # language -> its current item
        self._items = 0

    def __len__(self) -> int:
        return len(self._score)

    def add(self, row: Translation, score: float, *, truncated: bool = False) -> None:
        """Append one row with its estimate (NaN where there is none)."""
        reason = why_left_out(row, self._leave_out)
        current = self._last.get(row.language)
        if current is None or current[0] != row.item_id:
            current = (row.item_id, self._items)
            self._last[row.language] = current
            self._items += 1
        self._item.append(current[1])
        self._turn.append(row.turn)
        self._language.append(self._languages.setdefault(row.language, len(self._languages)))
        self._length.append(len(row.source))
        self._left_out.append(-1 if reason is None else self._reasons.setdefault(reason, len(self._reasons)))
        self._score.append(math.nan if reason is not None else self._sign * score)
        self._truncated.append(truncated)

    def build(self) -> Columns:
        """The arrays of all rows so far."""
        return Columns(
            np.array(self._score, np.float64),
            np.array(self._language, np.int16),
            np.array(self._item, np.int32),
            np.array(self._turn, np.int32),
            np.array(self._length, np.int32),
            np.array(self._left_out, np.int16),
            np.frombuffer(bytes(self._truncated), np.bool_),
            tuple(self._languages),
            tuple(self._reasons),
        )


def why_left_out(row: Translation, leave_out: Collection[str] = LEFT_OUT) -> str | None:
    """Why a translation does not enter the ranking: ``failed``, ``empty``, or the first flag in ``leave_out``; or None.

    >>> row = Translation("d#0", "d", 0, "Hi", " ", "en", "de", "dummy")
    >>> why_left_out(row)
    'empty'
    """
    if row.status in ("failed", "empty"):
        return row.status
    if not row.hypothesis.strip() or not row.source.strip():
        return "empty"
    return next((flag.name for flag in row.flags if flag.name in leave_out), None)
