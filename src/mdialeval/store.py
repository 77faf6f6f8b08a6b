"""Run folders: ``runs/<run>/<verb>-<fingerprint>/`` with fixed shards (Parquet) and a manifest written last.

The fingerprint hashes the verb, its version, the settings that change the content and the fingerprints of the inputs;
not the batch size, the device or the number of workers.  A stage is done when its manifest is there.  Killed at any
moment and started again, the bytes are those of an unbroken run: shards are whole or absent, and neither shards nor
manifest hold a time or a path.  Times go to ``timing.json``, which is not part of the result.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from mdialeval.errors import ResumeError
from mdialeval.files import write_json
from mdialeval.signature import file_hash, fingerprint
from mdialeval.tables import read_parquet, to_table, write_table

Record = TypeVar("Record")
MANIFEST = "manifest.json"
TIMING = "timing.json"
FEATURES = "features"
"""The folder of a run that holds what frozen encoders and language models made of texts."""
FAILED = ".failed-"

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_SHARD = re.compile(r"(.+)-(\d{5,})\.parquet")


@dataclass(frozen=True, slots=True)
class Stage:
    """One verb's folder in a run.

    Attributes:
        folder: where its shards lie.
        verb: ``translate``, ``rank`` ...
        version: raised when the code of the verb changes what it writes.
        settings: what changes the content, as JSON values.
        inputs: name -> fingerprint of the stages or files that it reads.
    """

    folder: Path
    verb: str
    version: int
    settings: Mapping[str, Any]
    inputs: Mapping[str, str] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """What the content depends on, hashed."""
        return stage_fingerprint(self.verb, self.version, self.settings, self.inputs)

    @property
    def done(self) -> bool:
        """Whether the manifest, which is written last, is there."""
        return (self.folder / MANIFEST).exists()

    def shard(self, index: int, table: str = "part") -> Path:
        """The path of one shard of one of the stage's tables."""
        return self.folder / f"{table}-{index:05d}.parquet"

    def shards(self, table: str = "part") -> list[Path]:
        """All shards of a table that are on disk, in order."""
        return [self.shard(index, table) for index in sorted(self.present(table))]

    def present(self, table: str = "part") -> set[int]:
        """Which shards of a table are on disk, from one look at the folder: a corpus has very many of them."""
        return {index for name, index in _on_disk(self.folder) if name == table}

    def write(self, index: int, records: Iterable[Any], record: type, table: str = "part") -> int:
        """Write one shard atomically; the row count.

        Raises:
            ResumeError: the disk is full.
        """
        return self.write_table(index, to_table(records, record), table)

    def write_table(self, index: int, rows: pa.Table, table: str = "part") -> int:
        """Write one shard whose rows are an Arrow table in the schema of their record type; see ``write``."""
        try:
            return write_table(self.shard(index, table), rows)
        except OSError as error:
            if error.errno not in _DISK_FULL:
                raise
            advice = "finished shards stay: make room and run the same command again"
            raise ResumeError(f"{self.folder}: {error.strerror or error}; {advice}") from error

    def read(self, record: type[Record], table: str = "part") -> Iterator[Record]:
        """Stream the records of a table, shard by shard."""
        for path in self.shards(table):
            yield from read_parquet(path, record)

    def finish(self, summary: Mapping[str, Any], files: Sequence[str] = ()) -> None:
        """Write the manifest: settings, inputs, the hash of every shard and named file, and the summary.

        What killed and failed attempts left behind is removed.
        """
        for pattern in (".*.parquet.*.tmp", f"{FAILED}*"):
            for path in self.folder.glob(pattern):
                path.unlink(missing_ok=True)
        names = [self.shard(index, table).name for table, index in sorted(_on_disk(self.folder))] + list(files)
        write_json(
            self.folder / MANIFEST,
            {
                "verb": self.verb,
                "version": self.version,
                "fingerprint": self.fingerprint,
                "settings": dict(self.settings),
                "inputs": dict(self.inputs),
                "files": {name: file_hash(self.folder / name) for name in names},
                "summary": dict(summary),
            },
        )

    def reopen(self) -> None:
        """Take the manifest away, so that shards can be replaced; ``finish`` writes a new one."""
        (self.folder / MANIFEST).unlink(missing_ok=True)

    @property
    def content(self) -> str:
        """The fingerprint and the hashes of the files of a finished stage: what a later stage that rests on it names
        as its input, where the rows may change under the same settings (failed calls that were asked again)."""
        return fingerprint([self.fingerprint, self.manifest()["files"]])

    def manifest(self) -> dict[str, Any]:
        """The manifest of a finished stage.

        Raises:
            ResumeError: the stage is not finished.
        """
        try:
            return _read_manifest(self.folder / MANIFEST)
        except FileNotFoundError:
            raise ResumeError(f"{self.folder} is not finished: run the verb {self.verb!r} again") from None

    def summary(self) -> dict[str, Any]:
        """The counts and coverage that the stage wrote into its manifest."""
        return dict(self.manifest()["summary"])


def _on_disk(folder: Path) -> list[tuple[str, int]]:
    """(table, index) of every shard in a folder."""
    found = (_SHARD.fullmatch(name) for name in os.listdir(folder))  # noqa: PTH208 - half a million names, no paths needed
    return [(match[1], int(match[2])) for match in found if match and not match[1].startswith(".")]


def _read_manifest(path: Path) -> dict[str, Any]:
    """A manifest, parsed again only when the file has changed: it names every shard, and every shard asks for it."""
    state = path.stat()
    return dict(_parsed(path, state.st_mtime_ns, state.st_size))


@functools.lru_cache(maxsize=32)
def _parsed(path: Path, mtime_ns: int, size: int) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def stage_fingerprint(verb: str, version: int, settings: Mapping[str, Any], inputs: Mapping[str, str]) -> str:
    """The fingerprint of a stage; see the module docstring."""
    return fingerprint({"verb": verb, "version": version, "settings": dict(settings), "inputs": dict(inputs)})


@dataclass(frozen=True, slots=True)
class Run:
    """A folder of stages that belong together."""

    folder: Path

    def stage(
        self, verb: str, version: int, settings: Mapping[str, Any], inputs: Mapping[str, str] | None = None
    ) -> Stage:
        """The stage for these settings, old or new; its folder exists afterwards."""
        key = stage_fingerprint(verb, version, settings, inputs or {})
        folder = self.folder / f"{verb}-{key}"
        folder.mkdir(parents=True, exist_ok=True)
        return Stage(folder, verb, version, settings, inputs or {})

    def finished(self, verb: str) -> list[Stage]:
        """All finished stages of a verb, by folder name."""
        return [load_stage(path.parent) for path in sorted(self.folder.glob(f"{verb}-*/{MANIFEST}"))]


def load_stage(folder: Path) -> Stage:
    """The finished stage in a folder.

    Raises:
        ResumeError: there is no manifest, or it belongs to other content.
    """
    path = folder / MANIFEST
    if not path.exists():
        raise ResumeError(f"{folder} holds no finished stage ({MANIFEST} is missing): run its verb again")
    manifest = _read_manifest(path)
    stage = Stage(folder, manifest["verb"], manifest["version"], manifest["settings"], manifest["inputs"])
    if stage.fingerprint != manifest["fingerprint"]:
        raise ResumeError(
            f"{path} was changed by hand (its fingerprint does not match): delete the folder and run again"
        )
    return stage
