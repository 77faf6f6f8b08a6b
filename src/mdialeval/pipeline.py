"""The one shard loop, with three drivers: this process, the ranks of ``accelerate launch``, and Ray.

Only this module knows about ranks, workers, progress and failures.  A verb hands over a *factory*: called once in every
worker, it loads the back end and returns a function from a shard's index to the shard's records.  Shards that are on
disk are never made again, so a killed run goes on where it stopped, and every driver leaves the same bytes.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

from mdialeval.config.run import ExecutionConfig
from mdialeval.errors import BackendError, MissingExtraError, ResumeError
from mdialeval.files import write_json
from mdialeval.store import TIMING, Stage

logger = logging.getLogger(__name__)

_RANK_TIMEOUT_S = 24 * 3600
_POLL_S = 0.2


class Shard(NamedTuple):
    """What a worker made of one shard.

    Attributes:
        records: the rows, in their final order.
        failures: rows among them whose status says that the back end failed.
    """

    records: Sequence[Any]
    failures: int = 0


class ShardFactory(Protocol):
    """Picklable; called once in each worker to load what the work needs."""

    def __call__(self) -> Callable[[int], Shard]:
        """The function that makes one shard."""
        ...


@dataclass(frozen=True, slots=True)
class Progress:
    """Where progress is shown.  ``quiet`` shows nothing; the command line shows a bar with rows a second."""

    quiet: bool = True

    @contextlib.contextmanager
    def bar(self, label: str, total: int, done: int) -> Iterator[Callable[[int], None]]:
        """A function that is told the rows of each finished shard."""
        if self.quiet or total == done:
            yield lambda rows: None
            return
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        rows, start = 0, time.monotonic()
        columns = (
            TextColumn("{task.description:<28}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("shards  {task.fields[speed]}"),
            TimeRemainingColumn(),
        )
        with RichProgress(*columns) as shown:
            task = shown.add_task(label, total=total, completed=done, speed="")

            def advance(count: int) -> None:
                nonlocal rows
                rows += count
                speed = rows / max(time.monotonic() - start, 1e-9)
                shown.update(task, advance=1, speed=f"{rows:,} rows, {speed:,.0f} rows/s")

            yield advance


def run_shards(
    stage: Stage,
    count: int,
    factory: ShardFactory,
    record: type,
    *,
    execution: ExecutionConfig,
    progress: Progress | None = None,
    table: str = "part",
    label: str = "",
) -> None:
    """Make every missing shard ``0 .. count - 1`` of one table of a stage.

    Args:
        stage: where the shards go.
        count: how many shards the table has.
        factory: loads the back end and returns the work; see ``ShardFactory``.
        record: the record type of the rows.
        execution: engine, workers, how many rows may fail.
        progress: where progress is shown.
        table: the stage's table.
        label: what the progress bar says; the verb where empty.

    Raises:
        BackendError: more rows failed than ``execution.max_failures``; finished shards stay.
        ResumeError: another rank stopped before its shards were done.
    """
    if stage.done:
        return
    missing = [index for index in range(count) if not stage.shard(index, table).exists()]
    work = _Work(stage, table, factory, record, execution.max_failures)
    started = time.monotonic()
    with (progress or Progress()).bar(label or stage.verb, count, count - len(missing)) as advance:
        rank, ranks = _rank()
        if ranks > 1:
            rows = _local(work, [index for index in missing if index % ranks == rank], advance)
            _wait_for([stage.shard(index, table).name for index in missing], stage)
        elif execution.engine == "ray" and missing:
            rows = _ray(work, missing, execution.workers, advance)
        else:
            rows = _local(work, missing, advance)
    if missing and rank == 0:
        _note_time(stage, table, rows, time.monotonic() - started)


def is_main_rank() -> bool:
    """Whether this process is the one that writes manifests and reports."""
    return _rank()[0] == 0


@dataclass(frozen=True, slots=True)
class _Work:
    """The part of the loop that runs in a worker: make a shard, judge its failures, write it."""

    stage: Stage
    table: str
    factory: ShardFactory
    record: type
    max_failures: int

    def start(self) -> Callable[[int], tuple[int, int]]:
        """Load the back end; the returned function makes and writes a shard: (rows, failures so far)."""
        make = self.factory()
        failures = 0

        def shard(index: int) -> tuple[int, int]:
            nonlocal failures
            made = make(index)
            failures += made.failures
            if failures > self.max_failures:
                raise BackendError(
                    self.stage.verb,
                    f"{failures} rows failed, more than execution.max_failures={self.max_failures}",
                    retryable=True,
                    hint=f"finished shards stay in {self.stage.folder}; mend the cause and run the same command again",
                )
            rows = self.stage.write(index, made.records, self.record, self.table)
            return rows, failures

        return shard


def _local(work: _Work, missing: Sequence[int], advance: Callable[[int], None]) -> int:
    if not missing:
        return 0
    shard, total = work.start(), 0
    for index in missing:
        rows, _ = shard(index)
        total += rows
        advance(rows)
    return total


class _RayWorker:
    """One Ray actor: loads the back end once, then makes one shard a row."""

    def __init__(self, work: _Work) -> None:
        self._shard = work.start()

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        rows, failures = self._shard(int(row["index"]))
        return {"index": row["index"], "rows": rows, "failures": failures}


def _ray(work: _Work, missing: Sequence[int], workers: int, advance: Callable[[int], None]) -> int:
    """Ray Data over the missing shards; a killed worker's shard is done again by another."""
    try:
        import ray
    except ModuleNotFoundError:
        raise MissingExtraError("execution engine 'ray'", "ray", "ray") from None
    if not ray.is_initialized():
        ray.init(log_to_driver=False, include_dashboard=False, configure_logging=False)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    size = min(workers, len(missing))
    rows = ray.data.from_items([{"index": index} for index in missing], override_num_blocks=len(missing))
    done = rows.map(
        cast(Any, _RayWorker),
        fn_constructor_args=(work,),
        compute=ray.data.ActorPoolStrategy(size=size),
        num_cpus=1,
        max_restarts=3,
        max_task_retries=3,
    )
    total = 0
    for row in done.iter_rows():
        total += int(row["rows"])
        advance(int(row["rows"]))
    return total


def _rank() -> tuple[int, int]:
    """(rank, number of ranks) as ``accelerate launch`` and torchrun announce them."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def _wait_for(names: Sequence[str], stage: Stage) -> None:
    """Wait until the other ranks' shards are there (shared file system)."""
    start = time.monotonic()
    while missing := [name for name in names if not (stage.folder / name).exists()]:
        if time.monotonic() - start > _RANK_TIMEOUT_S:
            raise ResumeError(
                f"{stage.folder}: other ranks never wrote {', '.join(missing[:3])}; run the command again"
            )
        time.sleep(_POLL_S)


def _note_time(stage: Stage, table: str, rows: int, seconds: float) -> None:
    """Keep how long the work took beside the result, outside of what is compared byte by byte."""
    path = stage.folder / TIMING
    noted = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    speed = round(rows / seconds, 1) if seconds > 0 else None
    write_json(path, [*noted, {"table": table, "rows": rows, "seconds": round(seconds, 3), "rows_per_second": speed}])
