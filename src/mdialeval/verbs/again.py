"""Rows of a finished ``score`` stage whose calls failed are asked again, and only they.

The manifest is taken away before the first shard is replaced and written last, as ever: a run that is killed in
between finds all shards whole and only counts them again.  Rows with an answer stay as they are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mdialeval.errors import BackendError
from mdialeval.pipeline import world_size
from mdialeval.records import Example, Prediction
from mdialeval.scorers.protocol import AsksAgain
from mdialeval.store import Stage
from mdialeval.tables import read_parquet

log = logging.getLogger(__name__)


def ask_again(
    stage: Stage, examples: Stage, load: Callable[[], AsksAgain], statuses: frozenset[str], finish: Callable[[], None]
) -> None:
    """Replace the rows of a finished stage that have one of the statuses by what the scorer says now.

    A scorer that cannot be asked at all (its server is gone) leaves the stage as it is, with a warning.

    Args:
        stage: finished predictions, shard by shard of ``examples``.
        examples: what was scored.
        load: makes the scorer; called only where there is something to ask.
        statuses: of the rows to ask again.
        finish: writes the stage's manifest.
    """
    counts = stage.summary()["statuses"]
    waiting = sum(counts.get(status, 0) for status in statuses)
    if not waiting:
        return
    if world_size() > 1:
        log.warning("%s: %d rows failed; run it in one process to ask them again", stage.folder, waiting)
        return
    scorer = load()
    try:
        for path in stage.shards():
            rows = list(read_parquet(path, Prediction))
            if not any(row.status in statuses for row in rows):
                continue
            found = _again(rows, examples.folder / path.name, scorer, statuses)
            if found != rows:
                stage.reopen()
                stage.write(int(path.stem.rpartition("-")[2]), found, Prediction)
    except BackendError as error:
        log.warning("%s: rows that failed cannot be asked again and stay as they are: %s", stage.folder, error)
    if not stage.done:
        finish()


def _again(rows: list[Prediction], path: Path, scorer: AsksAgain, statuses: frozenset[str]) -> list[Prediction]:
    """The rows of one shard, those with one of the statuses scored again."""
    by_key = {(e.id, e.language): e for e in read_parquet(path, Example)}
    places = [i for i, row in enumerate(rows) if row.status in statuses]
    asked = [(by_key[rows[i].example_id, rows[i].language], rows[i].dimension) for i in places]
    found = list(rows)
    for i, prediction in zip(places, scorer.score_rows(asked), strict=True):
        found[i] = replace(prediction, scorer=rows[i].scorer)
    return found
