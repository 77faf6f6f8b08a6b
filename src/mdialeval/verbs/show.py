"""``show``: what lies in a run folder, a stage folder or a table file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from mdialeval.errors import DataError
from mdialeval.store import MANIFEST, TIMING, load_stage


def show(path: Path, rows: int = 5) -> list[str]:
    """Lines for people about a run, a stage or a Parquet file.

    Raises:
        DataError: there is no such path, or nothing of ours in it.
    """
    if not path.exists():
        raise DataError("no such file or folder; runs are below runs/", path)
    if path.is_file():
        return _table(path, rows)
    if (path / MANIFEST).exists():
        return _stage(path, rows)
    stages = sorted(p.parent for p in path.glob(f"*/{MANIFEST}"))
    unfinished = sorted(p for p in path.iterdir() if p.is_dir() and "-" in p.name and p not in stages)
    if not stages and not unfinished:
        raise DataError("holds no stages: name a run folder, a stage folder or a Parquet file", path)
    lines = [line for stage in stages for line in _stage(stage, 0)]
    return lines + [f"{folder.name}: unfinished" for folder in unfinished]


def _stage(folder: Path, rows: int) -> list[str]:
    stage = load_stage(folder)
    lines = [folder.name]
    lines += [f"  {key}: {_short(value)}" for key, value in stage.summary().items()]
    timing = folder / TIMING
    if timing.exists():
        for entry in json.loads(timing.read_text(encoding="utf-8")):
            lines.append(f"  {entry['table']}: {entry['rows']:,} rows in {entry['seconds']:,} s")
    shards = stage.shards()
    return lines + (_table(shards[0], rows) if rows and shards else [])


def _table(path: Path, rows: int) -> list[str]:
    if path.suffix != ".parquet":
        raise DataError("only Parquet files are shown; use a text viewer for this one", path)
    with pq.ParquetFile(path) as file:
        lines = [f"  {path.name}: {file.metadata.num_rows:,} rows, columns {', '.join(file.schema_arrow.names)}"]
        for batch in file.iter_batches(batch_size=max(rows, 1)):
            lines += ["  " + json.dumps(row, ensure_ascii=False) for row in batch.to_pylist()[:rows]]
            break
    return lines


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else text[:297] + "..."
