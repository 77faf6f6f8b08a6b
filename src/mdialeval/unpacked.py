"""Model folders that are unpacked once into the user's cache: whole or absent, also with several processes at once."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from mdialeval.errors import BackendError
from mdialeval.files import write_json
from mdialeval.signature import file_hash

MARKER = "unpacked.json"
"""Written last: the folder's files with their sizes and hashes."""


def intact(folder: Path) -> bool:
    """Whether the folder was written to its end and no file has changed its size since."""
    try:
        files = json.loads((folder / MARKER).read_text(encoding="utf-8"))["files"]
        return all((folder / name).stat().st_size == entry["bytes"] for name, entry in files.items())
    except (OSError, ValueError, KeyError):
        return False


def verify(folder: Path) -> bool:
    """Whether every byte is as it was written (reads all of it); False where the folder is not intact."""
    if not intact(folder):
        return False
    files = json.loads((folder / MARKER).read_text(encoding="utf-8"))["files"]
    return all(file_hash(folder / name, 64) == entry["sha256"] for name, entry in files.items())


def unpack(folder: Path, write: Callable[[Path], None], origin: Mapping[str, str], what: str, space: str) -> None:
    """Let ``write`` fill a folder, which then appears at once.

    Args:
        folder: the target; a damaged older copy is replaced.
        write: fills the empty folder that it is given.
        origin: what the marker says of the source.
        what: the back end, for messages.
        space: how much room it takes, for messages.

    Raises:
        BackendError: the disk is full or the cache cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        temporary.chmod(0o755)
        try:
            write(temporary)
            _mark(temporary, origin)
            if folder.exists() and not intact(folder):  # a damaged older copy
                shutil.rmtree(folder)
            try:
                temporary.rename(folder)
            except OSError:
                if not intact(folder):  # otherwise another process was first, with the same bytes
                    raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise BackendError(
            what, f"cannot write {folder}: {error}", hint=f"set MDIALEVAL_CACHE to a folder with {space} of space"
        ) from error


def _mark(folder: Path, origin: Mapping[str, str]) -> None:
    names = sorted(path.name for path in folder.iterdir())
    entries = {n: {"bytes": (folder / n).stat().st_size, "sha256": file_hash(folder / n, 64)} for n in names}
    write_json(folder / MARKER, {**origin, "files": entries})
