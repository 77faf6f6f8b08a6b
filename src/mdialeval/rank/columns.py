"""What ranking needs to know about every row, in less than thirty bytes a row: scores in memory, texts on disk."""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mdialeval.records import Translation
from mdialeval.translate.checks import FLAGS

LEFT_OUT = frozenset(name for name, kind in FLAGS.items() if kind.policy != "keep")
"""The flags that keep a translation out of the ranking unless the caller says otherwise."""

_LONGEST = 65_535

EXTENDED = ("item_id", "turn", "source", "hypothesis", "language", "status", "flags")
"""The columns of translations that ``ColumnsBuilder.extend`` looks at."""


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Rows as arrays of the same length N, in input order.

    Attributes:
        score: (N,) float64, higher is better; NaN where the row was left out or could not be estimated.
        language: (N,) int16, index into ``languages``.
        item: (N,) int32, the same number for the turns of one item in one language, which follow one another.
        turn: (N,) int32, index in the item.
        length: (N,) uint16, characters of the source, 65,535 where there are more.
        left_out: (N,) int8, -1 where the row is ranked, else index into ``reasons``.
        truncated: (N,) bool, whether the estimator saw only a part of the row.
        languages: canonical codes, in order of appearance.
        reasons: why rows were left out, in order of appearance.
    """

    score: NDArray[np.float64]
    language: NDArray[np.int16]
    item: NDArray[np.int32]
    turn: NDArray[np.int32]
    length: NDArray[np.uint16]
    left_out: NDArray[np.int8]
    truncated: NDArray[np.bool_]
    languages: tuple[str, ...]
    reasons: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.score)


class _Rare:
    """A column that is 0 almost always: it takes no memory up to its first other value.

    Args:
        code: of ``array``, for signed integers.
    """

    def __init__(self, code: str) -> None:
        self._values = array(code)

    def extend(self, at: int, values: Any) -> None:
        """Put one value, or (rows,) of them, at row ``at``, behind all earlier ones."""
        found = np.atleast_1d(np.asarray(values, self._values.typecode))
        if found.any():
            self._values.frombytes(bytes((at - len(self._values)) * self._values.itemsize))
            self._values.frombytes(found.tobytes())

    def build(self, rows: int) -> NDArray[Any]:
        """(rows,) the column."""
        if not self._values:
            return np.broadcast_to(np.zeros((), self._values.typecode), rows)
        self._values.frombytes(bytes((rows - len(self._values)) * self._values.itemsize))
        return np.frombuffer(self._values, self._values.typecode)


class ColumnsBuilder:
    """Takes rows one at a time and gives ``Columns``.

    The turns of an item must follow one another inside their language (languages may be interleaved); that is how the
    shards of ``translate`` hold them.

    Args:
        leave_out: flags whose rows do not enter the ranking.
        higher_is_better: direction of the estimator's scores; they are turned so that higher is better.
        places: whether item and turn of the rows are kept, which only keys over several turns look at; else all 0.
    """

    def __init__(
        self, leave_out: Collection[str] = LEFT_OUT, *, higher_is_better: bool = True, places: bool = True
    ) -> None:
        self._places = places
        self._leave_out = frozenset(leave_out)
        self._sign = 1.0 if higher_is_better else -1.0
        self._score, self._length, self._left_out = array("d"), array("H"), array("b")
        self._item, self._turn = array("i"), array("i")
        self._language, self._truncated = _Rare("h"), _Rare("b")
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
        if self._places:
            self._item.append(current[1])
            self._turn.append(row.turn)
        self._language.extend(len(self), self._languages.setdefault(row.language, len(self._languages)))
        self._truncated.extend(len(self), truncated)
        self._length.append(min(len(row.source), _LONGEST))
        self._left_out.append(-1 if reason is None else self._reasons.setdefault(reason, len(self._reasons)))
        self._score.append(math.nan if reason is not None else self._sign * score)

    def extend(self, table: pa.Table, score: NDArray[np.float64], truncated: NDArray[np.bool_]) -> None:
        """Append a table of translations into one language: ``add`` for every row, at a tenth of its cost.

        Args:
            table: at least the columns ``EXTENDED`` of ``Translation``.
            score: (rows,) the estimates, NaN where there is none.
            truncated: (rows,) whether the estimator saw only a part.
        """
        rows = table.num_rows
        if not rows:
            return
        language, *others = pc.unique(table["language"]).to_pylist()
        if others:
            raise ValueError(f"one language at a time, not {language} and {', '.join(others)}")
        if self._places:
            self._extend_places(language, table)
        left_out = np.full(rows, -1, np.int8)
        for row, reason in sorted(_reasons(table, self._leave_out).items()):
            left_out[row] = self._reasons.setdefault(reason, len(self._reasons))
        code = self._languages.setdefault(language, len(self._languages))
        self._language.extend(len(self), np.full(rows, code))
        self._truncated.extend(len(self), truncated)
        length = np.minimum(pc.utf8_length(table["source"]).to_numpy(), _LONGEST)
        self._length.frombytes(length.astype(np.uint16).tobytes())
        self._left_out.frombytes(left_out.tobytes())
        self._score.frombytes(np.where(left_out < 0, self._sign * score, math.nan).astype(np.float64).tobytes())

    def _extend_places(self, language: str, table: pa.Table) -> None:
        ids = table["item_id"].to_numpy()
        known, number = self._last.get(language, (None, -1))
        starts = np.concatenate([[ids[0] != known], ids[1:] != ids[:-1]])
        items = np.where(np.cumsum(starts) == 0, number, self._items - 1 + np.cumsum(starts))
        self._items += int(starts.sum())
        self._last[language] = (ids[-1], int(items[-1]))
        self._item.frombytes(items.astype(np.int32).tobytes())
        self._turn.frombytes(table["turn"].to_numpy().astype(np.int32).tobytes())

    def build(self) -> Columns:
        """The arrays of all rows so far, without a copy: nothing can be added afterwards."""
        none = np.broadcast_to(np.int32(0), len(self))
        return Columns(
            np.frombuffer(self._score, np.float64),
            self._language.build(len(self)),
            np.frombuffer(self._item, np.int32) if self._places else none,
            np.frombuffer(self._turn, np.int32) if self._places else none,
            np.frombuffer(self._length, np.uint16),
            np.frombuffer(self._left_out, np.int8),
            self._truncated.build(len(self)).astype(np.bool_, copy=False),
            tuple(self._languages),
            tuple(self._reasons),
        )


def _reasons(table: pa.Table, leave_out: Collection[str]) -> dict[int, str]:
    """Row -> why it does not enter the ranking, as ``why_left_out`` says, for the rows that do not."""
    found: dict[int, str] = {}
    flags = table["flags"].combine_chunks()
    names = flags.flatten().field("name").to_pylist()
    ends = np.cumsum(flags.value_lengths().to_numpy())
    for row in np.flatnonzero(np.diff(ends, prepend=0)):
        first = next((n for n in names[ends[row - 1] if row else 0 : ends[row]] if n in leave_out), None)
        if first is not None:
            found[int(row)] = first
    for name in ("source", "hypothesis"):
        texts = table[name].to_numpy().tolist()
        found.update((row, "empty") for row, text in enumerate(texts) if not text.strip())
    status = table["status"].to_numpy()
    for reason in ("failed", "empty"):
        found.update((int(row), reason) for row in np.flatnonzero(status == reason))
    return found


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
