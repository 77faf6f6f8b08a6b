"""Cells of a benchmark in several processes at once.

Each job is a process of its own that leaves finished stages behind, nothing else; whoever asked reads them afterwards
as in a run of one process, so that both give the same numbers.  A process that dies costs its own cells only.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import NamedTuple

from mdialeval.devices import gpu_count, use_threads
from mdialeval.errors import BackendError, MdialevalError
from mdialeval.pipeline import Progress
from mdialeval.verbs.cells import Bench, Cell, Failure, run_cell

log = logging.getLogger(__name__)


class _Running(NamedTuple):
    """A started job."""

    process: BaseProcess
    messages: Connection
    cells: list[Cell]
    slot: int


def run_jobs(
    bench: Bench, jobs: Sequence[list[Cell]], parallel: int, threads: int, done: Callable[[int], None]
) -> list[Failure]:
    """Make the stages of all cells, at most ``parallel`` jobs at a time.

    Args:
        bench: what cells start from; its shared stages are finished.
        jobs: cells of one job run one after the other.
        parallel: processes.
        threads: of each process.
        done: told the number of finished jobs.

    Returns:
        the cells that failed, in the order of the jobs.
    """
    context = multiprocessing.get_context("spawn")  # a forked process would inherit torch's threads in any state
    waiting, free, running = deque(jobs), list(range(parallel)), dict[int, _Running]()
    failures: dict[Cell, Failure] = {}
    finished = 0
    try:
        while waiting or running:
            while waiting and free:
                cells, slot = waiting.popleft(), free.pop(0)
                receiver, sender = context.Pipe(duplex=False)
                process = context.Process(target=_work, args=(bench, cells, slot, threads, sender))
                process.start()
                sender.close()
                running[process.sentinel] = _Running(process, receiver, cells, slot)
            for sentinel in wait(list(running)):
                ended = running.pop(sentinel)  # type: ignore[arg-type]
                ended.process.join()
                failures |= {f.cell: f for f in _failures(ended)}
                free.append(ended.slot)
                finished += 1
                done(finished)
    finally:
        for entry in running.values():
            entry.process.terminate()
            entry.process.join()
    order = [cell for cells in jobs for cell in cells]
    return sorted(failures.values(), key=lambda failure: order.index(failure.cell))


def _failures(ended: _Running) -> list[Failure]:
    """The failures that a process told of; the cells it never told of, it died on."""
    told: dict[Cell, MdialevalError | None] = {}
    try:
        while ended.messages.poll():
            cell, error = ended.messages.recv()
            told[cell] = error
    except EOFError:
        pass
    code = ended.process.exitcode
    died = BackendError(
        "benchmark",
        f"its process ended with code {code}" + (" (killed, maybe for lack of memory)" if code and code < 0 else ""),
        hint="what it wrote stays: run the same command again, with fewer parallel cells where memory is short",
    )
    found = [(cell, told.get(cell, died)) for cell in ended.cells]
    return [Failure(cell, error) for cell, error in found if error is not None]


def _work(bench: Bench, cells: list[Cell], slot: int, threads: int, messages: Connection) -> None:
    """One process: make the cells, tell of each how it ended."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    logging.basicConfig(level=os.environ.get("MDIALEVAL_LOG", "WARNING"), format="%(levelname)s %(name)s: %(message)s")
    os.environ["OMP_NUM_THREADS"] = str(threads)
    use_threads(threads)
    bench = _on_its_gpu(bench, slot, gpu_count())
    for cell in cells:
        try:
            run_cell(bench, cell, Progress(quiet=True))
        except MdialevalError as error:
            messages.send((cell, error))
        else:
            messages.send((cell, None))


def _on_its_gpu(bench: Bench, slot: int, gpus: int) -> Bench:
    """Where there are several GPUs and none was chosen, each process takes its own."""
    config = bench.config
    if gpus < 2 or config.train.device not in ("auto", "cuda"):
        return bench
    device = {"device": f"cuda:{slot % gpus}"}
    sections = {"train": config.train.model_copy(update=device), "score": config.score.model_copy(update=device)}
    return Bench(config.model_copy(update=sections), bench.run, bench.corpus, bench.ranked)


def _end_with_parent() -> None:
    """Nobody reads the work of an orphan, and a second run must not meet it in its folders."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
