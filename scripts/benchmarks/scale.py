"""Corpora in shards: is memory flat and time linear, what does a second Ray worker bring, what does the store cost?

Every measurement runs in its own process.  ``translate`` and ``rank`` see n rows and ten times as many, with the dummy
engine and estimator.  Ray with two workers and one plain process then rank the same rows by an estimator that only
computes, in turn, several rounds; their shards must be the same bytes.  Last, records go to a shard and back by the
store and by ``dataclasses.asdict`` with ``Table.from_pylist``, as one would write it by hand.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mdialeval import api
from mdialeval.config import parse
from mdialeval.pipeline import Progress
from mdialeval.records import Dialogue, Flag, Translation
from mdialeval.store import Run, Stage
from mdialeval.tables import from_table, read_parquet, schema, to_table, write_parquet
from mdialeval.verbs.rank import rank

WORDS = ("we", "they", "the", "red", "plum", "cake", "train", "house", "bring", "leave", "never", "please", "small")
TURNS = 8
SHARD_ROWS = 2048


class Busy:
    """An estimator that computes in this thread for about as long as a small network takes; ``rounds`` of SHA-256."""

    higher_is_better = True

    def __init__(self, rounds: int = 2000) -> None:
        self.rounds = rounds
        self.identity = f"estimator:busy:{rounds}"

    def estimate(self, pairs: Sequence[Translation]) -> list[float]:
        return [self._score(row) for row in pairs]

    def _score(self, row: Translation) -> float:
        digest = row.hypothesis.encode()
        for _ in range(self.rounds):
            digest = hashlib.sha256(digest).digest()
        return int.from_bytes(digest[:6], "big") / 2**48


def config(folder: Path, estimator: str = "dummy", **execution: Any) -> dict[str, Any]:
    return {
        "runs": str(folder / "runs"),
        "corpus": {"path": str(folder / "corpus.jsonl")},
        "translate": {"routes": {"pt": "dummy"}},
        "rank": {"estimator": estimator, "k": [5, 50]},
        "execution": execution,
    }


def write_corpus(path: Path, rows: int) -> None:
    """Dialogues of eight short turns, all distinct."""
    rng = random.Random(rows)
    with open(path, "w", encoding="utf-8") as stream:
        for i in range(rows // TURNS):
            turns = [f"{' '.join(rng.choices(WORDS, k=4)).capitalize()} {i}." for _ in range(TURNS)]
            stream.write(json.dumps({"id": f"d{i}", "language": "en", "turns": turns}) + "\n")


def write_translations(folder: Path, rows: int) -> tuple[Stage, Stage]:
    """A corpus and its translations as stages, written column by column: what ``rank`` reads."""
    run = Run(folder / "runs" / "default")
    corpus, translated = run.stage("read", 1, {"rows": rows}), run.stage("translate", 1, {"rows": rows})
    if translated.done:
        return corpus, translated
    flags = pa.array([[]] * SHARD_ROWS, schema(Translation).field("flags").type)
    for index in range(rows // SHARD_ROWS):
        numbers = range(index * SHARD_ROWS, (index + 1) * SHARD_ROWS)
        columns: dict[str, Any] = {
            "id": [f"d{n // TURNS}#{n % TURNS}" for n in numbers],
            "item_id": [f"d{n // TURNS}" for n in numbers],
            "turn": [n % TURNS for n in numbers],
            "source": [f"Shall we take the {n % 97} train to the plum house {n}?" for n in numbers],
            "hypothesis": [f"Vamos no comboio das {n % 97} para a casa das ameixas {n}?" for n in numbers],
            "flags": flags,
            "back": pa.nulls(SHARD_ROWS, pa.string()),
        }
        constant = {"source_language": "en", "language": "pt", "backend": "dummy:en-pt", "status": "ok"}
        columns |= {name: [value] * SHARD_ROWS for name, value in constant.items()}
        kind = schema(Translation)
        translated.write_table(index, pa.table([columns[name] for name in kind.names], schema=kind))
        corpus.write(index, [], Dialogue)
    corpus.finish({})
    translated.finish({})
    return corpus, translated


def peak_mb() -> float:
    """The largest resident size of this process; unlike ``ru_maxrss`` it does not inherit the parent's."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def child(job: str, folder: Path, rows: int) -> dict[str, Any]:
    """One measurement, in a process of its own."""
    start = 0.0
    if job == "translate":
        call: Callable[[], Any] = lambda: api.translate(config(folder))  # noqa: E731
    else:
        engine = {"engine": "ray", "workers": 2} if job == "ray" else {}
        estimator = "dummy" if job == "rank" else "scale:Busy"
        settings = parse(config(folder, estimator, **engine))
        corpus, translated = write_translations(folder, rows)
        if job != "rank":
            start = idle(settings, rows)
        out = Run(folder / f"out-{job}-{time.time_ns()}")
        call = lambda: rank(settings, out, corpus, translated, Progress())  # noqa: E731
    started, before = time.perf_counter(), time.process_time()
    stage = call()
    seconds = time.perf_counter() - started
    spent = time.process_time()  # unlike the time on the clock it leaves out what others do on the machine
    found: dict[str, Any] = {"seconds": seconds, "cpu": spent - before, "mb": peak_mb(), "start": start}
    if job in ("ray", "plain"):
        found["shards"] = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in stage.shards()}
    return found


def idle(settings: Any, rows: int) -> float:
    """Seconds of the same call where there is nothing to compute: the start of the workers, files, the second pass.

    The first call, which also starts Ray itself, is not counted.
    """
    with tempfile.TemporaryDirectory() as name:
        corpus, translated = write_translations(Path(name), rows)
        quick = parse({**settings.model_dump(), "rank": {"estimator": "dummy"}})
        for place in ("first", "second"):
            started = time.perf_counter()
            rank(quick, Run(Path(name) / place), corpus, translated, Progress())
    return time.perf_counter() - started


def measure(job: str, folder: Path, rows: int) -> dict[str, Any]:
    command = [
        sys.executable,
        str(Path(__file__).resolve()),
        "--job",
        job,
        "--folder",
        str(folder),
        "--rows",
        str(rows),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(ended.stderr)
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def growth(job: str, folder: Path, rows: int) -> dict[str, float]:
    """Seconds and peak memory at n and at 10 n rows."""
    small, large = rows, 10 * rows
    found = {}
    for size in (small, large):
        there = folder / f"{job}-{size}"
        there.mkdir()
        if job == "translate":
            write_corpus(there / "corpus.jsonl", size)
        else:
            write_translations(there, size)
        found[size] = measure(job, there, size)
        one = found[size]
        print(f"{job:<10} {size:>10,} rows  {one['seconds']:8.1f} s  {one['cpu']:8.1f} s CPU  {one['mb']:8.0f} MB")
    more = (found[large]["mb"] - found[small]["mb"]) * 2**20 / (large - small)
    return {
        "rows": large,
        "seconds": round(found[large]["seconds"], 2),
        "mb": round(found[large]["mb"], 1),
        "cpu_ratio": round(found[large]["cpu"] / found[small]["cpu"], 2),
        "time_ratio": round(found[large]["seconds"] / found[small]["seconds"], 2),
        "memory_ratio": round(found[large]["mb"] / found[small]["mb"], 3),
        "bytes_a_row": round(more, 1),
        "us_a_row": round((found[large]["seconds"] - found[small]["seconds"]) / (large - small) * 1e6, 1),
    }


def store(folder: Path, rows: int, rounds: int) -> dict[str, float]:
    """Microseconds a row to write and to read translations: the store, and plain pyarrow."""
    flag = (Flag("numbers", 1.0, "7"),)
    constant = ("en", "pt", "dummy", "ok")
    records = [
        Translation(f"d{i}#0", f"d{i}", 0, f"Bring {i} plums.", f"Traz {i}.", *constant, flag[: i % 9 == 0])
        for i in range(rows)
    ]
    path, kind = folder / "store.parquet", schema(Translation)

    def by_hand() -> list[Translation]:
        table = pa.Table.from_pylist([dataclasses.asdict(record) for record in records], schema=kind)
        pq.write_table(table, path, compression="zstd")
        rows_ = pq.read_table(path).to_pylist()
        return [Translation(**{**r, "flags": tuple(Flag(**f) for f in r["flags"])}) for r in rows_]

    def ours() -> list[Translation]:
        write_parquet(path, records, Translation)
        return list(read_parquet(path, Translation))

    times: dict[str, list[float]] = {"ours": [], "peer": []}
    for _ in range(rounds):
        for name, call in (("peer", by_hand), ("ours", ours)):
            started = time.perf_counter()
            if call() != records:
                raise SystemExit(f"{name} lost something")
            times[name].append((time.perf_counter() - started) / rows * 1e6)
    if from_table(to_table(records, Translation), Translation) != records:
        raise SystemExit("a table lost something")
    found = {name: round(statistics.median(values), 2) for name, values in times.items()}
    print(f"{'store':<10} {found['ours']} µs a row written and read, by hand {found['peer']} µs")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--translate-rows", type=int, default=1000, help="n for translate; 0 leaves it out")
    parser.add_argument("--rank-rows", type=int, default=20 * SHARD_ROWS, help="n for rank; 0 leaves it out")
    parser.add_argument("--ray-rows", type=int, default=4 * SHARD_ROWS, help="rows for Ray against one process")
    parser.add_argument("--store-rows", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(child(options.job, options.folder, options.rows)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        grown = {
            job: growth(job, folder, rows - rows % (SHARD_ROWS if job == "rank" else TURNS))
            for job, rows in (("translate", options.translate_rows), ("rank", options.rank_rows))
            if rows
        }
        cost = store(folder, options.store_rows, options.rounds)
        result: dict[str, Any] = {"name": "scale", **grown, "store_us_a_row": cost}
        if options.ray_rows:
            result |= workers(folder, options.ray_rows, options.rounds)
    print(json.dumps(result))


def workers(folder: Path, rows: int, rounds: int) -> dict[str, Any]:
    """Rows a second of two Ray workers and of one process, in turn.

    ``ratio`` compares the work: both sides without what the same call takes where there is nothing to compute, which
    comes as ``start_seconds``; ``ratio_with_start`` is the plain ratio at this size.
    """
    found: dict[str, list[dict[str, Any]]] = {"plain": [], "ray": []}
    write_translations(folder, rows)
    for _ in range(rounds):
        for job, measured in found.items():
            measured.append(one := measure(job, folder, rows))
            print(f"{job:<10} {rows:>10,} rows  {one['seconds']:8.1f} s, of it {one['start']:.1f} s without work")
    work = {job: statistics.median(one["seconds"] - one["start"] for one in found[job]) for job in found}
    whole = {job: statistics.median(one["seconds"] for one in found[job]) for job in found}
    return {
        "ours": round(rows / work["ray"], 1),
        "peer": round(rows / work["plain"], 1),
        "unit": "rows/s",
        "ratio": round(work["plain"] / work["ray"], 2),
        "ratio_with_start": round(whole["plain"] / whole["ray"], 2),
        "start_seconds": {job: round(statistics.median(one["start"] for one in found[job]), 2) for job in found},
        "equal": all(one["shards"] == found["plain"][0]["shards"] for ones in found.values() for one in ones),
    }


if __name__ == "__main__":
    main()
