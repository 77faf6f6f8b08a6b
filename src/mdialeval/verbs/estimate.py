"""The first pass of ``rank``: one estimator's scores of all translations, as a stage of its own.

What follows from the scores (k, weights, ties, keys) can change without asking the estimator again.
"""

from __future__ import annotations

import functools
import json
import math
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from mdialeval.cache import on_this_host
from mdialeval.config.rank import PartConfig, RankConfig
from mdialeval.config.run import RunConfig
from mdialeval.errors import ConfigError
from mdialeval.pipeline import Progress, Shard, complete, run_shards
from mdialeval.rank.protocol import ESTIMATORS, QualityEstimator, create_estimator, gaps, truncated
from mdialeval.records import QualityScore, Translation
from mdialeval.registry import check_options, resolve
from mdialeval.store import Run, Stage
from mdialeval.tables import read_parquet, read_table
from mdialeval.verbs.parse import CACHE as PARSES

VERSION = 1
VERB = "estimate"


def check_estimators(section: RankConfig, *, back: bool) -> None:
    """Names and options of all estimators of a section, before the first of them is loaded.

    Args:
        section: names the estimators.
        back: whether there are back-translations, which some of them need.

    Raises:
        ConfigError: lists every unknown name (with the known ones) and option.
    """
    problems: list[str] = []
    for part in section.members():
        try:
            estimator = resolve("estimator", ESTIMATORS, part.estimator)
            check_options("estimator", part.estimator, estimator, part.options)
            if getattr(estimator, "needs_back", False) and not back:
                problems.append(f"rank: the estimator {part.estimator!r} needs translate.back: true")
        except ConfigError as error:
            where = f"rank.parts, {part.title}: " if section.parts else ""
            known = f" (known: {', '.join(ESTIMATORS)})" if "did you mean" in str(error) else ""
            problems += [f"{where}{problem}{known}" for problem in error.problems]
    if problems:
        raise ConfigError(problems)


def load_estimator(section: RankConfig, part: PartConfig, cache: Path | None = None) -> QualityEstimator:
    """The estimator of a part with the settings that all parts share; the last one stays loaded in a process.

    Args:
        section: the settings that parts share.
        part: which estimator.
        cache: the file of graph parses.
    """
    return _estimator(_key(section, part, cache))


def estimate(
    config: RunConfig, run: Run, corpus: Stage, translated: Stage, part: PartConfig, progress: Progress
) -> Stage:
    """Score all translations by one estimator; a shard holds all languages of one corpus shard.

    The summary names the estimator and whether higher is better.

    Raises:
        ConfigError, BackendError: the estimator cannot be made.
        DataError: a row is too long and ``rank.on_long`` is ``error``.
    """
    key = _key(config.rank, part, run.folder.parent / PARSES)
    estimator = _estimator(key)
    stage = run.stage(VERB, VERSION, {"estimator": estimator.identity}, {"translations": translated.fingerprint})
    if stage.done:
        return stage
    count = len(corpus.shards())
    languages = len(config.translate.routes)
    factory = _Factory(key, translated, languages, count)
    label = f"rank: {part.title}"
    run_shards(stage, count, factory, QualityScore, execution=config.execution, progress=progress, label=label)
    complete(stage, lambda: stage.finish(_summary(stage, estimator)))
    return stage


def scores_of(stage: Stage, index: int, language: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(rows,) raw score (NaN where none) and whether the estimator saw only a part, of one language of a shard."""
    table = read_table(stage.shard(index), ("language", "score", "truncated"))
    table = table.filter(pc.field("language") == language)
    return table["score"].to_numpy(), table["truncated"].to_numpy()


def _summary(stage: Stage, estimator: QualityEstimator) -> dict[str, Any]:
    rows, unscored = 0, Counter[str]()
    for path in stage.shards():
        reasons = read_table(path, ("reason",))["reason"]
        rows += len(reasons)
        for found in pc.value_counts(reasons).to_pylist():
            unscored[found["values"]] += found["counts"]
    return {
        "rows": rows,
        "estimator": estimator.identity,
        "higher_is_better": estimator.higher_is_better,
        "unscored": {reason: n for reason, n in sorted(unscored.items()) if reason},
    }


def _key(section: RankConfig, part: PartConfig, cache: Path | None) -> str:
    shared: dict[str, Any] = {
        "batch_size": section.batch_size,
        "device": section.device,
        "on_long": section.on_long,
    }
    home = [str(cache), socket.gethostname()] if cache else None
    return json.dumps([part.estimator, part.options, shared, home], sort_keys=True)


@functools.lru_cache(maxsize=1)
def _estimator(key: str) -> QualityEstimator:
    """The estimator behind its name and options as JSON."""
    name, options, shared, home = json.loads(key)
    cache = str(on_this_host(Path(home[0]), home[1])) if home else None
    return create_estimator(name, options, cache=cache, **shared)


@dataclass(frozen=True, slots=True)
class _Factory:
    """Loads the estimator once a worker."""

    key: str
    translated: Stage
    languages: int
    count: int

    def __call__(self) -> Callable[[int], Shard]:
        return functools.partial(self._shard, _estimator(self.key))

    def _shard(self, estimator: QualityEstimator, index: int) -> Shard:
        places = range(index, self.languages * self.count, self.count)
        rows = [row for place in places for row in read_parquet(self.translated.shard(place), Translation)]
        scores = estimator.estimate(rows)
        cut, reasons = truncated(estimator, rows), gaps(estimator, rows, scores)
        return Shard(
            [
                QualityScore(row.id, row.language, None if math.isnan(score) else score, long, reason)
                for row, score, long, reason in zip(rows, scores, cut, reasons, strict=True)
            ]
        )
