"""How a number was made, in one line: the signature that travels with every score file (after sacreBLEU's idea)."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any


def fingerprint(value: Any, length: int = 12) -> str:
    """A short hexadecimal SHA-256 of a JSON value; key order does not matter.

    >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def file_hash(path: str | Path, length: int = 12) -> str:
    """A short hexadecimal SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()[:length]


def folder_hash(path: str | Path, length: int = 12) -> str:
    """A short hash over the relative names and bytes of all files below a folder (or of one file)."""
    root = Path(path)
    if root.is_file():
        return file_hash(root, length)
    names = sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())
    return fingerprint([[name, file_hash(root / name, 64)] for name in names], length)


@functools.cache
def version(package: str) -> str:
    """The installed version of a distribution, or ``absent``."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"


def versions(*packages: str) -> dict[str, str]:
    """The installed versions of this package and others."""
    return {name: version(name) for name in ("mdialeval", *packages)}


def signature_line(parts: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> str:
    """One line of ``key:value`` joined by ``|``, in the order given.

    >>> signature_line({"scorer": "evaluator", "dtype": "float32"})
    'scorer:evaluator|dtype:float32'
    """
    items = parts.items() if isinstance(parts, Mapping) else parts
    return "|".join(f"{key}:{value}" for key, value in items)
