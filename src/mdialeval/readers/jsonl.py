"""JSON Lines (one object a line), or one JSON list of objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic.dataclasses import dataclass

from mdialeval.readers.columns import Columns
from mdialeval.readers.opening import json_rows
from mdialeval.readers.protocol import OPTIONS
from mdialeval.records import Dialogue, Example


@dataclass(frozen=True, kw_only=True, config=OPTIONS)
class JsonLines(Columns):
    """Reads JSON Lines; the native form of this project needs no options (see ``columns``)."""

    def read(self, paths: Sequence[Path]) -> Iterator[Dialogue | Example]:
        """Stream the records of the files; see ``Columns.items``."""
        for path in paths:
            yield from self.items(path, json_rows(path), native=not self.columns)
