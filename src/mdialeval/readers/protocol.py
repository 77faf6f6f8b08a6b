"""What a corpus reader is, and the table of readers: one corpus format a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from mdialeval.records import Dialogue, Example

READERS: Mapping[str, str] = {}


class Reader(Protocol):
    """Reads one corpus format.  Options are the constructor's keyword arguments."""

    def read(self, paths: Sequence[Path]) -> Iterator[Dialogue | Example]:
        """Stream the items of the files, in file order.

        Raises:
            DataError: names file, row, field and fix.
        """
        ...
