"""Dialogues both trained on and checked against: refused, left out of training, or allowed, and always said."""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from typing import NamedTuple

from mdialeval.config.run import RunConfig
from mdialeval.errors import DataError
from mdialeval.pipeline import complete
from mdialeval.readers.overlap import Overlap, OverlapReport, find_overlap
from mdialeval.store import Run, Stage
from mdialeval.verbs.read import items_of, source_stage

log = logging.getLogger(__name__)
VERSION, SHOWN = 1, 5


class Leakage(NamedTuple):
    """What training and rated data share.

    Attributes:
        drop: groups or ids of training items that are left out.
        text: one sentence a rated set that overlaps, for summaries and reports.
    """

    drop: frozenset[str]
    text: tuple[str, ...]


def find_leakage(config: RunConfig, run: Run, training: Sequence[Stage]) -> Leakage:
    """Compare the training originals with every rated set, across languages, near duplicates included.

    Translations share the group of their original, so that the originals alone are compared.  What two sets share is a
    stage of its own, since it takes a while and every cell of a benchmark asks for it.

    Raises:
        DataError: there is overlap and ``train.leakage`` is ``refuse``; lists where and what.
    """
    drop: set[str] = set()
    texts: list[str] = []
    samples: list[Overlap] = []
    for source in config.score.sets:
        rated = source_stage(source, config.translate.source, config.execution.shard_size, run)
        for stage in training:
            found = _overlap(run, stage, rated)
            if not found.overlaps:
                continue
            counts = ", ".join(f"{n} {kind}" for kind, n in sorted(found.kinds.items()))
            texts.append(
                f"{sum(found.kinds.values())} of {found.one_items} training items occur in {source.title} ({counts})"
            )
            drop |= {overlap.one for overlap in found.overlaps}
            samples += found.overlaps
    if texts and config.train.leakage == "refuse":
        raise DataError(
            "; ".join(texts)
            + "; such as "
            + "; ".join(
                f"{o.one} ({o.one_language}) ~ {o.other} ({o.other_language}): {o.text!r}" for o in samples[:SHOWN]
            )
            + ". Set train.leakage to drop (leave these training items out) or allow"
        )
    for text in texts:
        log.warning("%s: %s", text, "left out of training" if config.train.leakage == "drop" else "allowed")
    return Leakage(frozenset(drop) if config.train.leakage == "drop" else frozenset(), tuple(texts))


def _overlap(run: Run, training: Stage, rated: Stage) -> OverlapReport:
    """What two sets share, found once."""
    inputs = {"training": training.fingerprint, "rated": rated.fingerprint}
    stage = run.stage("overlap", VERSION, {}, inputs)
    complete(stage, functools.partial(_compare, stage, training, rated))
    counts = stage.summary()
    return OverlapReport(tuple(stage.read(Overlap)), counts["training_items"], counts["rated_items"])


def _compare(stage: Stage, training: Stage, rated: Stage) -> None:
    found = find_overlap(items_of(training), items_of(rated))
    stage.write(0, found.overlaps, Overlap)
    stage.finish({"training_items": found.one_items, "rated_items": found.other_items, "overlap": found.kinds})


def _line(overlap: Overlap) -> str:
    one, other = f"{overlap.one} ({overlap.one_language})", f"{overlap.other} ({overlap.other_language})"
    return f"{one} ~ {other}: {overlap.text!r}"
