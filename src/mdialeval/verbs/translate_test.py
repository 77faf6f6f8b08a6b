"""Translate-test: rated examples are translated into English, and an English evaluator scores them."""

from __future__ import annotations

import functools
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mdialeval.cache import Cache, on_this_host
from mdialeval.config.run import RunConfig
from mdialeval.pipeline import Progress, Shard, complete, run_shards
from mdialeval.records import SCORED, Example, Prediction, Translation
from mdialeval.registry import create
from mdialeval.scorers.protocol import SCORERS
from mdialeval.store import FEATURES, Run, Stage
from mdialeval.tables import read_parquet
from mdialeval.translate.route import make_route
from mdialeval.translate.turns import rebuild, translate_items
from mdialeval.verbs.read import source_stage
from mdialeval.verbs.score import Scored
from mdialeval.verbs.train import EVALUATOR
from mdialeval.verbs.translate import CACHE

VERSION = 1
NAME = "translate-test"


def into_english(config: RunConfig, run: Run, evaluators: dict[str, Stage], progress: Progress) -> list[Scored]:
    """Score every set's examples in the languages that have a route into English (``benchmark.into_english``).

    An example whose translation failed has the status ``failed``; English examples are scored as they are.
    """
    found = []
    for source in config.score.sets:
        examples = source_stage(source, config.translate.source, config.execution.shard_size, run)
        routes = {
            code: make_route(text, code, config.translate.source, config.translate.options)
            for code, text in config.benchmark.into_english.items()
        }
        settings = {"routes": {code: route.identity for code, route in routes.items()}, "seed": config.seed}
        inputs = {"examples": examples.fingerprint, **{n: s.fingerprint for n, s in evaluators.items()}}
        stage = run.stage("score", VERSION, {"scorer": NAME, **settings}, inputs)
        folders = tuple(str(s.folder / EVALUATOR) for s in evaluators.values())
        cache, host = run.folder.parent / CACHE, socket.gethostname()
        factory = _Factory(config, examples, folders, cache, host, run.folder / FEATURES)
        label = f"score {source.title}: {NAME}"
        count = len(examples.shards())
        run_shards(stage, count, factory, Prediction, execution=config.execution, progress=progress, label=label)
        complete(stage, functools.partial(_finish, stage, folders))
        found.append(Scored(source, examples, NAME, stage))
    return found


def _finish(stage: Stage, folders: tuple[str, ...]) -> None:
    stage.finish(_summary(stage, folders))


@dataclass(frozen=True, slots=True)
class _Factory:
    """Loads routes and evaluators once a worker."""

    config: RunConfig
    examples: Stage
    folders: tuple[str, ...]
    cache: Path
    home: str  # the machine whose cache it is
    features: Path

    def __call__(self) -> Callable[[int], Shard]:
        scorer = create(
            "scorer", SCORERS, "evaluator", {"folder": list(self.folders), "likelihood_cache": str(self.features)}
        )
        return functools.partial(self._shard, scorer, Cache(on_this_host(self.cache, self.home), "translate"))

    def _shard(self, scorer: Any, cache: Cache, index: int) -> Shard:
        section = self.config.translate
        rows: list[Prediction] = []
        by_language: dict[str, list[Example]] = {}
        for example in read_parquet(self.examples.shard(index), Example):
            by_language.setdefault(example.language, []).append(example)
        for code, examples in by_language.items():
            if code == section.source:
                rows += scorer.score(examples)
            elif code in self.config.benchmark.into_english:
                route = make_route(self.config.benchmark.into_english[code], code, section.source, section.options)
                turns = translate_items(examples, route, code, section.source, cache=cache)
                rows += _scores(scorer, examples, turns, code)
        return Shard(rows, sum(row.status == "failed" for row in rows))


def _scores(scorer: Any, examples: list[Example], turns: list[Translation], code: str) -> list[Prediction]:
    by_item: dict[str, list[Translation]] = {}
    for turn in turns:
        by_item.setdefault(turn.item_id, []).append(turn)
    english = [rebuild(example, by_item[example.id]) for example in examples]
    scored = scorer.score([e for e in english if isinstance(e, Example)])
    failed = [example for example, item in zip(examples, english, strict=True) if item is None]
    rows = [replace(row, language=code) for row in scored]
    for example in failed:
        rows += [
            Prediction(example.id, code, NAME, dimension, None, "failed", {"problem": "not translated"})
            for dimension in scorer.dimensions
        ]
    return rows


def _summary(stage: Stage, folders: tuple[str, ...]) -> dict[str, Any]:
    statuses: dict[str, int] = {}
    for row in stage.read(Prediction):
        statuses[row.status] = statuses.get(row.status, 0) + 1
    total, covered = sum(statuses.values()), sum(n for status, n in statuses.items() if status in SCORED)
    scorer = create("scorer", SCORERS, "evaluator", {"folder": list(folders)})
    return {
        "scorer": NAME,
        "signature": scorer.signature,
        "rows": total,
        "statuses": dict(sorted(statuses.items())),
        "coverage": f"{covered} of {total}",
    }
