"""Files that are whole or absent: written to a temporary name beside the target, flushed to disk, renamed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO


def replace_atomically(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Write a file so that a reader sees the old one or the new one, never a part.

    A failure (a full disk, an interrupt) removes the temporary file and leaves the target as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file atomically, keys in the order given; NaN is refused, since JSON has none."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    replace_atomically(path, lambda stream: _write(stream, text))


def _write(stream: BinaryIO, text: str) -> None:
    stream.write(text.encode())
