"""Scores that exist already, from a file, joined by example id: how other tools' scores come in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from mdialeval.errors import ConfigError, DataError, nearest
from mdialeval.languages import canonical
from mdialeval.readers.opening import csv_rows, json_rows, tsv_rows
from mdialeval.records import Example, Prediction
from mdialeval.registry import Asset
from mdialeval.signature import file_hash, signature_line, versions

_READERS = {".jsonl": json_rows, ".csv": csv_rows, ".tsv": tsv_rows}


class Given:
    """Looks scores up by example id, and language where the file has that column.

    Args:
        path: ``.jsonl``, ``.csv`` or ``.tsv``.
        dimension: what the scores measure.
        id: column of the example's id.
        score: column of the score, higher is better; an empty cell is a failed row.
        language: column of the language; a file without it is for all languages.

    Raises:
        ConfigError: no such file, or an unknown ending.
        DataError: a column is missing, an id occurs twice, or a score is not a number; names the row.
    """

    name = "given"

    def __init__(
        self,
        path: str | Path,
        dimension: str = "overall",
        id: str = "id",
        score: str = "score",
        language: str = "language",
    ) -> None:
        file = Path(path).expanduser()
        if not file.is_file():
            raise ConfigError(f"scorer 'given': no file {file} (working folder: {Path.cwd()})")
        if file.suffix not in _READERS:
            raise ConfigError(f"scorer 'given': {file}: unknown file ending; use one of {', '.join(_READERS)}")
        self.dimensions = (dimension,)
        self._scores: dict[tuple[str, str], float | None] = {}
        for line, row in _READERS[file.suffix](file):
            for column in (id, score):
                if column not in row:
                    raise DataError(f"no column {column!r}: {nearest(column, row)}", file, line)
            key = (str(row[id]), _code(row, language))
            if key in self._scores:
                raise DataError(f"{key[0]!r} occurs twice", file, line, id)
            self._scores[key] = _number(row[score], file, line, score)
        self.signature = signature_line(
            {"scorer": "given", "dimension": dimension, "file": file_hash(file), "score": score, **versions()}
        )

    @staticmethod
    def assets(path: str | Path = "", **_: object) -> list[Asset]:
        """The file."""
        there = Path(path).expanduser().is_file()
        return [Asset("given scores", "file", there, str(path), "" if there else "write the file or mend its path")]

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """The file's scores; a row it lacks is ``failed``."""
        return [self._one(example) for example in examples]

    def _one(self, example: Example) -> Prediction:
        keys = ((example.id, example.language), (example.id, ""))
        found = next((self._scores[key] for key in keys if key in self._scores), None)
        missing = not any(key in self._scores for key in keys)
        head = (example.id, example.language, self.name, self.dimensions[0])
        if found is None:
            return Prediction(*head, None, "failed", {"reason": "no row" if missing else "no score"})
        return Prediction(*head, found, "ok")


def _code(row: Mapping[str, object], column: str) -> str:
    return canonical(str(row[column])) if row.get(column) else ""


def _number(value: object, file: Path, line: int, field: str) -> float | None:
    if value is None or value == "":
        return None
    try:
        number = float(str(value))
    except ValueError:
        raise DataError(f"{value!r} is not a number", file, line, field) from None
    return number if math.isfinite(number) else None
