"""A cache of slow or paid calls (translation, LLM replies, graph parses) in one SQLite file.

The key hashes the request and the back end's identity, so another model or version never answers for this one.
Failures and refusals are the caller's to keep out: what is put in is returned for ever.
"""

from __future__ import annotations

import hashlib
import json
import socket
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

_CHUNK = 500  # keys per SELECT, below SQLite's limit on bound variables


def on_this_host(path: Path, home: str) -> Path:
    """The cache file of this machine: ``path`` itself on the machine called ``home``, one beside it on every other.

    SQLite locks do not hold between machines on a network file system, so no two of them share a file.
    """
    host = socket.gethostname()
    return path if host == home else path.with_name(f"{path.stem}-{host}{path.suffix}")


class Cache:
    """String values by request.  Safe for several processes; one object belongs to one thread.

    Args:
        path: the SQLite file; None keeps everything in memory.
        identity: the back end, its model and version: part of every key.
    """

    def __init__(self, path: Path | None, identity: str) -> None:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        self.identity = identity
        self._base = hashlib.sha256(identity.encode())
        self._connection = sqlite3.connect(path or ":memory:", timeout=60)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=NORMAL")
        self._connection.execute("CREATE TABLE IF NOT EXISTS cache (key BLOB PRIMARY KEY, value TEXT)")
        self._connection.commit()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the object cannot be used afterwards."""
        self._connection.close()

    def key(self, request: Any) -> bytes:
        """The key of a request (a string or a JSON value)."""
        text = request if isinstance(request, str) else json.dumps(request, sort_keys=True, ensure_ascii=False)
        digest = self._base.copy()
        digest.update(b"\0" + text.encode("utf-8", "surrogatepass"))
        return digest.digest()[:20]

    def get(self, requests: Sequence[Any]) -> list[str | None]:
        """The cached values, None where there is none; same length and order."""
        keys = [self.key(request) for request in requests]
        found: dict[bytes, str] = {}
        for start in range(0, len(keys), _CHUNK):
            part = keys[start : start + _CHUNK]
            marks = ",".join("?" * len(part))
            found.update(self._connection.execute(f"SELECT key, value FROM cache WHERE key IN ({marks})", part))
        return [found.get(key) for key in keys]

    def put(self, values: Mapping[str, str] | Iterable[tuple[Any, str]]) -> None:
        """Store values by request in one transaction."""
        items = values.items() if isinstance(values, Mapping) else values
        with self._connection:
            self._connection.executemany(
                "INSERT OR REPLACE INTO cache VALUES (?, ?)", [(self.key(request), value) for request, value in items]
            )
