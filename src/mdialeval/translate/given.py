"""Translations that exist already, from a file: joined by the turn's id, or by its source text."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mdialeval.errors import BackendError, ConfigError, DataError, nearest
from mdialeval.languages import canonical
from mdialeval.readers.opening import csv_rows, json_rows, tsv_rows
from mdialeval.records import Translation
from mdialeval.registry import Asset
from mdialeval.segments import clean
from mdialeval.signature import file_hash
from mdialeval.tables import read_parquet


class Given:
    """Looks translations up in a file of records, one row a turn.

    Args:
        path: ``.csv``, ``.tsv`` (never quoted), ``.jsonl`` or ``.parquet`` (records of ``Translation``).
        source: the column of the source text.
        hypothesis: the column of the translation; or give ``columns``.
        columns: language -> column, for wide files with one column a language.
        id: the column of the turn's id (``item#turn``); joined by source text where a row or the file has none.
        language: the column of the target language; None where the file holds one language only.
    """

    placeholders = False

    def __init__(
        self,
        path: str | Path,
        source: str = "source",
        hypothesis: str = "hypothesis",
        columns: Mapping[str, str] | None = None,
        id: str | None = "id",
        language: str | None = "language",
    ) -> None:
        self._path = Path(path).expanduser()
        self._columns = {canonical(code): column for code, column in (columns or {}).items()}
        self._names = (source, hypothesis, id, language)
        self._by_id: dict[tuple[str, str], str] = {}
        self._by_text: dict[tuple[str, str], str] = {}
        self._load()
        self.identity = f"given/{file_hash(self._path)}"

    @classmethod
    def assets(cls, path: str | Path = "", **_: object) -> list[Asset]:
        """The file."""
        there = Path(path).expanduser().is_file()
        return [
            Asset("given translations", "file", there, str(path), "" if there else "write the file or mend its path")
        ]

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Translations by source text; ``BackendError`` names the first text that has none."""
        found = self.translate_turns([""] * len(texts), texts, source, target)
        for text, hypothesis in zip(texts, found, strict=True):
            if hypothesis is None:
                raise BackendError("given", f"{self._path} has no {target} translation of {text[:60]!r}")
        return [text for text in found if text is not None]

    def translate_turns(self, ids: Sequence[str], texts: Sequence[str], source: str, target: str) -> list[str | None]:
        """Translations by id, else by source text; None where the file has none."""
        found: list[str | None] = []
        for turn, text in zip(ids, texts, strict=True):
            hypothesis = self._by_id.get((target, turn))
            if hypothesis is None:
                hypothesis = self._by_text.get((target, _key(text)))
            if hypothesis is None:
                hypothesis = self._by_id.get(("", turn), self._by_text.get(("", _key(text))))
            found.append(hypothesis)
        return found

    def _load(self) -> None:
        source, hypothesis, identifier, language = self._names
        first = True
        for line, row in _rows(self._path):
            if first:
                self._header(row)
                first = False
            targets = self._columns or {_target(row, language, self._path, line): hypothesis}
            for target, column in targets.items():
                text = row.get(column)
                if text is None or not str(text).strip():
                    continue
                if identifier is not None and row.get(identifier):
                    self._by_id[target, str(row[identifier])] = str(text)
                if row.get(source):
                    for key in {_key(str(row[source])), _key(clean(str(row[source]), "en"))}:
                        self._by_text.setdefault((target, key), str(text))

    def _header(self, row: Mapping[str, Any]) -> None:
        source, hypothesis, identifier, _ = self._names
        for column in self._columns.values() or [hypothesis]:
            if column not in row:
                raise DataError(f"no such column; {nearest(column, map(str, row))}", self._path, field=column)
        if source not in row and (identifier is None or identifier not in row):
            raise DataError(
                f"needs the turn's id or its source text; {nearest(source, map(str, row))}", self._path, field=source
            )


def _key(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _target(row: Mapping[str, Any], column: str | None, path: Path, line: int) -> str:
    if column is None or not row.get(column):
        return ""
    try:
        return canonical(str(row[column]))
    except ConfigError as error:
        raise DataError(str(error), path, line, column) from None


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if path.suffix == ".parquet" and path.is_file():
        for row, record in enumerate(read_parquet(path, Translation), 1):
            yield row, {name: getattr(record, name) for name in ("id", "source", "hypothesis", "language")}
        return
    readers = {".csv": csv_rows, ".tsv": tsv_rows, ".jsonl": json_rows}
    if path.suffix not in readers:
        raise ConfigError(f"given: {path} must be a file that ends in .parquet, {', '.join(readers)}")
    yield from readers[path.suffix](path)
