"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic.dataclasses import dataclass

from mdialeval.errors import DataError
from mdialeval.readers.columns import Columns
from mdialeval.readers.opening import counted
from mdialeval.readers.protocol import OPTIONS
from mdialeval.records import Dialogue, Example
from mdialeval.tables import schema

_NATIVE = [schema(record).names for record in (Dialogue, Example)]


@dataclass(frozen=True, kw_only=True, config=OPTIONS)
class Parquet(Columns):
    """Reads Parquet, one row group at a time; ``line`` in messages is the row, counted from 1."""

    def read(self, paths: Sequence[Path]) -> Iterator[Dialogue | Example]:
        """Stream the records of the files; see ``Columns.items``."""
        for path in paths:
            try:
                file = pq.ParquetFile(path)
            except (OSError, pa.ArrowInvalid) as error:
                raise DataError(f"is not a Parquet file that can be read ({error})", path) from None
            with file:
                native = not self.columns and file.schema_arrow.names in _NATIVE
                yield from self.items(path, counted(path, _rows(file)), native)


def _rows(file: pq.ParquetFile) -> Iterator[tuple[int, dict[str, Any]]]:
    number = 0
    for batch in file.iter_batches(batch_size=4096):
        for row in batch.to_pylist():
            number += 1
            yield number, row
