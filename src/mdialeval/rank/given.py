"""Scores that exist already, from a file, joined by id: how estimators of other environments come in."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from mdialeval.errors import ConfigError, DataError, nearest
from mdialeval.languages import canonical
from mdialeval.readers.opening import csv_rows, json_rows, tsv_rows
from mdialeval.records import Translation
from mdialeval.registry import Asset
from mdialeval.signature import file_hash

log = logging.getLogger(__name__)


class Given:
    """Looks scores up by translation id and language.

    Args:
        path: ``.jsonl``, ``.csv``, ``.tsv`` or ``.parquet``.
        id: the column of the translation's id (``item#turn``).
        score: the column of the score.
        language: the column of the language; where the file has none, an id stands for every language.
        higher_is_better: direction of the scores (MetricX, for one, counts errors: False).

    Raises:
        ConfigError: no such file, or an unknown ending.
        DataError: a missing column, a score that is no number, or an id that occurs twice; names the line.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        id: str = "id",
        score: str = "score",
        language: str = "language",
        higher_is_better: bool = True,
    ) -> None:
        self._path = Path(path).expanduser()
        if not self._path.is_file():
            raise ConfigError(f"estimator 'given': no file {self._path} (working folder: {Path.cwd()})")
        self.higher_is_better = higher_is_better
        self.identity = f"estimator:given|file:{file_hash(self._path)}|score:{score}"
        self._scores: dict[tuple[str, str], float] = {}
        lines: dict[tuple[str, str], int] = {}
        for line, row in _rows(self._path):
            for column in (id, score):
                if column not in row:
                    raise DataError(f"no column {column!r}: {nearest(column, row)}", self._path, line)
            key = (str(row[id]), canonical(str(row[language])) if row.get(language) else "")
            if key in lines:
                raise DataError(f"{key[0]!r} occurs twice (also in line {lines[key]})", self._path, line, id)
            lines[key] = line
            self._scores[key] = _number(row[score], self._path, line, score)

    @staticmethod
    def assets(path: str | Path = "", **_: object) -> list[Asset]:
        """The file."""
        there = Path(path).expanduser().is_file()
        return [Asset("given scores", "file", there, str(path), "" if there else "write the file or mend its path")]

    def estimate(self, pairs: Sequence[Translation]) -> list[float]:
        """The file's scores; NaN, counted and said, where it has none."""
        scores = [self._scores.get((r.id, r.language), self._scores.get((r.id, ""), math.nan)) for r in pairs]
        missing = [row for row, score in zip(pairs, scores, strict=True) if math.isnan(score)]
        if missing:
            log.warning(
                "%s has no score for %d of %d rows, such as %r", self._path, len(missing), len(pairs), missing[0].id
            )
        return scores


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    readers = {".jsonl": json_rows, ".csv": csv_rows, ".tsv": tsv_rows, ".parquet": _parquet_rows}
    if path.suffix not in readers:
        raise ConfigError(f"estimator 'given': {path}: unknown file ending; use one of {', '.join(readers)}")
    yield from readers[path.suffix](path)


def _parquet_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with pq.ParquetFile(path) as file:
        number = 0
        for batch in file.iter_batches():
            for row in batch.to_pylist():
                number += 1
                yield number, row


def _number(value: Any, path: Path, line: int, field: str) -> float:
    """A score; an empty cell or null is no score."""
    if value is None or value == "":
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        raise DataError(f"{value!r} is not a number", path, line, field) from None
