"""CSV and TSV files with a header line."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from pydantic.dataclasses import dataclass

from mdialeval.errors import ConfigError
from mdialeval.readers.columns import Columns
from mdialeval.readers.opening import csv_rows, tsv_rows
from mdialeval.readers.protocol import OPTIONS
from mdialeval.records import Dialogue, Example

_NATIVE = [[f.name for f in dataclasses.fields(record)] for record in (Dialogue, Example)]
_ESCAPE = re.compile(r"\\([\\tnr])")
_PLAIN = {"\\": "\\", "t": "\t", "n": "\n", "r": "\r"}
Rows = Iterator[tuple[int, Mapping[str, str | None]]]


@dataclass(frozen=True, kw_only=True, config=OPTIONS)
class Csv(Columns):
    """Reads CSV with quoting.

    Attributes:
        delimiter: found from the header where None (``,`` or ``;``).
    """

    delimiter: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise ConfigError(f"delimiter: one character, not {self.delimiter!r}")

    def read(self, paths: Sequence[Path]) -> Iterator[Dialogue | Example]:
        """Stream the records of the files; see ``Columns.items``."""
        for path in paths:
            native, rows = _peek(csv_rows(path, self.delimiter), self.columns)
            if native:
                rows = ((line, _written(row)) for line, row in rows)
            yield from self.items(path, rows, native)


@dataclass(frozen=True, kw_only=True, config=OPTIONS)
class Tsv(Columns):
    """Reads TSV without quoting: a quote is an ordinary character."""

    def read(self, paths: Sequence[Path]) -> Iterator[Dialogue | Example]:
        """Stream the records of the files; see ``Columns.items``."""
        for path in paths:
            native, rows = _peek(tsv_rows(path), self.columns)
            if native:  # tables.write_records escapes tabs and line ends; other people's backslashes are text
                rows = ((line, _written({name: _unescape(c) for name, c in row.items()})) for line, row in rows)
            yield from self.items(path, rows, native)


def _peek(rows: Iterator[tuple[int, dict[str, str]]], columns: Mapping[str, str | None]) -> tuple[bool, Rows]:
    """Whether the file was written by this project (its columns are a record's fields), and all of its rows."""
    first = next(rows, None)
    if first is None:
        return False, iter(())
    return not columns and list(first[1]) in _NATIVE, chain([first], rows)


def _written(row: Mapping[str, str | None]) -> dict[str, str | None]:
    """A row of our own, where an empty response is no response: the whole dialogue is rated."""
    return {**row, "response": row["response"] or None} if "response" in row else dict(row)


def _unescape(cell: str | None) -> str | None:
    return _ESCAPE.sub(lambda match: _PLAIN[match[1]], cell) if cell and "\\" in cell else cell
