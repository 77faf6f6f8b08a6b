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
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from mdialeval.config.run import ExecutionConfig
from mdialeval.errors import BackendError, MdialevalError, MissingExtraError, ResumeError
from mdialeval.files import write_json
from mdialeval.store import FAILED, TIMING, Stage

logger = logging.getLogger(__name__)

_RANK_TIMEOUT_S = 24 * 3600
_POLL_S = (0.1, 5.0)  # first and longest pause between two looks at what other ranks have done
_STARTED = time.time()


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

    @contextlib.contextmanager
    def steps(self, label: str) -> Iterator[Callable[[int], None]]:
        """A function that is told how many steps of a training are done; their end depends on early stopping."""
        if self.quiet:
            yield lambda step: None
            return
        from rich.progress import Progress as RichProgress
        from rich.progress import TextColumn, TimeElapsedColumn

        text = "{task.description:<28} step {task.completed}  {task.fields[speed]}"
        columns = (TextColumn(text), TimeElapsedColumn())
        start = time.monotonic()
        with RichProgress(*columns) as shown:
            task = shown.add_task(label, total=None, speed="")

            def advance(step: int) -> None:
                speed = step / max(time.monotonic() - start, 1e-9)
                shown.update(task, completed=step, speed=f"{speed:,.1f} steps/s")

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
        ResumeError: another rank stopped before its shards were done, or the disk is full.
    """
    if stage.done:
        return
    there = stage.present(table)
    missing = [index for index in range(count) if index not in there]
    work = _Work(stage, table, factory, record, execution.max_failures)
    started = time.monotonic()
    rank, ranks = _rank()
    with (progress or Progress()).bar(label or stage.verb, count, count - len(missing)) as advance, _announced(stage):
        if ranks > 1:
            rows = _local(work, [index for index in missing if index % ranks == rank], advance)
            _wait_until(lambda: stage.present(table).issuperset(missing), stage)
        elif execution.engine == "ray" and missing:
            rows = _ray(work, missing, execution.workers, advance)
        else:
            rows = _local(work, missing, advance)
    if missing and rank == 0:
        _note_time(stage, table, rows, time.monotonic() - started)


def complete(stage: Stage, make: Callable[[], None]) -> None:
    """Finish a stage once: the main rank calls ``make``, which writes the manifest, and the others wait for that.

    Raises:
        ResumeError: the main rank stopped before the manifest was written.
    """
    if stage.done:
        return
    with _announced(stage):
        if is_main_rank():
            make()
        else:
            _wait_until(lambda: stage.done, stage)


def is_main_rank() -> bool:
    """Whether this process is the one that writes manifests and reports."""
    return _rank()[0] == 0


def world_size() -> int:
    """How many ranks work on this run; 1 without a launcher."""
    return _rank()[1]


@dataclass(frozen=True, slots=True)
class _Work:
    """The part of the loop that runs in a worker: make a shard, judge its failures, write it."""

    stage: Stage
    table: str
    factory: ShardFactory
    record: type
    max_failures: int

    def start(self) -> Callable[[int], tuple[int, int]]:
        """Load the back end; the returned function makes and writes a shard: (rows, failures among them)."""
        make = self.factory()
        failures = 0

        def shard(index: int) -> tuple[int, int]:
            nonlocal failures
            made = make(index)
            failures += made.failures
            self.judge(failures)
            return self.stage.write(index, made.records, self.record, self.table), made.failures

        return shard

    def judge(self, failures: int) -> None:
        """Stop where too many rows have failed."""
        if failures > self.max_failures:
            raise BackendError(
                self.stage.verb,
                f"{failures} rows failed, more than execution.max_failures={self.max_failures}",
                retryable=True,
                hint=f"finished shards stay in {self.stage.folder}; mend the cause and run the same command again",
            )


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
    """One Ray actor: loads the back end once, on its first shard, then makes one shard a row.

    Args:
        work: what to do.
        folder: the driver's working folder, to which relative paths belong.
        path: where the driver finds its modules, such as a back end outside this package.
        threads: of torch and its like.
    """

    def __init__(self, work: _Work, folder: str, path: Sequence[str], threads: int) -> None:
        os.chdir(folder)
        sys.path += [entry for entry in path if entry not in sys.path]
        os.environ["OMP_NUM_THREADS"] = os.environ["RAYON_NUM_THREADS"] = str(threads)
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(threads)
        self._work = work
        self._shard: Callable[[int], tuple[int, int]] | None = None

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        try:
            if self._shard is None:
                self._shard = self._work.start()
            rows, failures = self._shard(int(row["index"]))
        except MdialevalError as error:  # a user's mistake travels as a value: Ray would wrap it or try again
            return {"rows": 0, "failures": 0, "error": pickle.dumps(error)}
        return {"rows": rows, "failures": failures, "error": b""}


def _ray(work: _Work, missing: Sequence[int], workers: int, advance: Callable[[int], None]) -> int:
    """Ray Data over the missing shards; a killed worker's shard is done again by another."""
    try:
        import ray
    except ModuleNotFoundError:
        raise MissingExtraError("execution engine 'ray'", "ray", "ray") from None
    _start_ray(workers)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    size = min(workers, len(missing))
    cores, resources = _share(cast(Any, ray).cluster_resources(), size)
    rows = ray.data.from_items([{"index": index} for index in missing], override_num_blocks=len(missing))
    done = rows.map(
        cast(Any, _RayWorker),
        fn_constructor_args=(work, str(Path.cwd()), tuple(sys.path), cores),
        compute=ray.data.ActorPoolStrategy(size=size),
        ray_remote_args_fn=_restarts,
        **cast(Any, resources),
    )
    logging.getLogger("ray.data").setLevel(logging.ERROR)  # Ray resets it whenever a dataset is made
    total = failures = 0
    for row in done.iter_rows():
        if row["error"]:
            raise pickle.loads(row["error"])
        total, failures = total + int(row["rows"]), failures + int(row["failures"])
        work.judge(failures)
        advance(int(row["rows"]))
    return total


def _restarts() -> dict[str, Any]:
    """A dead worker is replaced, and its shard is tried on three more before the run stops with an error."""
    return {"max_restarts": -1, "max_task_retries": 3}


def _start_ray(workers: int) -> None:
    """Join the cluster that ``RAY_ADDRESS`` names, or start one on this machine with as many CPUs as workers."""
    import ray

    if ray.is_initialized():
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if os.environ.get("RAY_ADDRESS"):
        offline = {name: os.environ[name] for name in ("HF_HUB_OFFLINE",) if name in os.environ}
        ray.init(runtime_env={"env_vars": offline}, **quiet)
    else:
        ray.init(address="local", num_cpus=workers, include_dashboard=False, **quiet)


def _share(cluster: dict[str, float], size: int) -> tuple[int, dict[str, float]]:
    """Threads of each of ``size`` workers, and what each asks Ray for: its part of the cores and of the GPUs."""
    if os.environ.get("RAY_ADDRESS"):
        cores = max(1, int(cluster.get("CPU", 1)) // size)
        resources: dict[str, float] = {"num_cpus": cores}
    else:
        cores = max(1, (os.cpu_count() or 1) // size)
        resources = {"num_cpus": 1}
    if gpus := cluster.get("GPU", 0):
        resources["num_gpus"] = min(1.0, int(1000 * gpus / size) / 1000)
    return cores, resources


def _rank() -> tuple[int, int]:
    """(rank, number of ranks) as ``accelerate launch`` and torchrun announce them."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


@contextlib.contextmanager
def _announced(stage: Stage) -> Iterator[None]:
    """Where there are several ranks, one that fails leaves a note, so that the others do not wait for it."""
    rank, ranks = _rank()
    try:
        yield
    except BaseException as error:  # an interrupt, too, ends the wait of the others; it is raised again
        if ranks > 1:
            (stage.folder / f"{FAILED}{rank}").write_text(f"{type(error).__name__}: {error}", encoding="utf-8")
        raise


def _wait_until(ready: Callable[[], bool], stage: Stage) -> None:
    """Wait for what the other ranks do (shared file system)."""
    start, (pause, longest) = time.monotonic(), _POLL_S
    while not ready():
        for note in stage.folder.glob(f"{FAILED}*"):
            if note.stat().st_mtime >= _STARTED:  # older ones are of an earlier attempt
                rank, reason = note.name.removeprefix(FAILED), note.read_text(encoding="utf-8")
                raise ResumeError(f"{stage.folder}: rank {rank} stopped ({reason}); run the command again")
        if time.monotonic() - start > _RANK_TIMEOUT_S:
            raise ResumeError(f"{stage.folder}: other ranks never finished their part; run the command again")
        time.sleep(pause)
        pause = min(2 * pause, longest)


def _note_time(stage: Stage, table: str, rows: int, seconds: float) -> None:
    """Keep how long the work took beside the result, outside of what is compared byte by byte."""
    path = stage.folder / TIMING
    noted = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    speed = round(rows / seconds, 1) if seconds > 0 else None
    write_json(path, [*noted, {"table": table, "rows": rows, "seconds": round(seconds, 3), "rows_per_second": speed}])
