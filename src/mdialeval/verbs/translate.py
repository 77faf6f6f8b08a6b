"""``translate``: the corpus into every target language; one shard a language and corpus shard."""

from __future__ import annotations

import functools
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mdialeval.cache import Cache, on_this_host
from mdialeval.config.run import RunConfig
from mdialeval.config.translate import TranslateConfig
from mdialeval.errors import ConfigError
from mdialeval.pipeline import Progress, Shard, complete, run_shards
from mdialeval.records import Translation
from mdialeval.store import Run, Stage
from mdialeval.tables import read_table
from mdialeval.translate.route import Route, make_route, make_routes, parse_route
from mdialeval.translate.turns import translate_items
from mdialeval.verbs.read import shard_items

VERSION = 1
CACHE = "translate.sqlite"


def translate(config: RunConfig, run: Run, corpus: Stage, progress: Progress) -> Stage:
    """Translate every turn of the corpus by the configured routes.

    Raises:
        ConfigError: no route, or a route that cannot be walked.
        BackendError: an engine failed on too many sentences.
    """
    section = config.translate
    if not section.routes:
        raise ConfigError("translate.routes: name at least one target language, such as {pt: firefox}")
    routes = _routes(section)
    identities = {
        target: [forward.identity, back.identity if back else ""] for target, (forward, back) in routes.items()
    }
    settings = {**section.content("options"), "identities": identities}
    stage = run.stage("translate", VERSION, settings, {"corpus": corpus.fingerprint})
    shards = len(corpus.shards())
    cache = run.folder.parent / CACHE
    languages = tuple(section.routes)
    failures = config.execution.max_failures
    factory = _Factory(section, corpus, languages, shards, cache, socket.gethostname(), failures)
    count = shards * len(languages)
    run_shards(stage, count, factory, Translation, execution=config.execution, progress=progress)
    complete(stage, lambda: stage.finish(_summary(stage, languages, shards)))
    return stage


@dataclass(frozen=True, slots=True)
class _Factory:
    """Loads the routes once a worker."""

    section: TranslateConfig
    corpus: Stage
    languages: tuple[str, ...]
    shards: int
    cache: Path
    home: str  # the machine whose cache it is
    max_failures: int

    def __call__(self) -> Callable[[int], Shard]:
        routes = _routes(self.section)
        cache = Cache(on_this_host(self.cache, self.home), "translate")
        return functools.partial(self._shard, routes, cache)

    def _shard(self, routes: dict[str, tuple[Route, Route | None]], cache: Cache, index: int) -> Shard:
        language, place = self.languages[index // self.shards], index % self.shards
        route, back = routes[language]
        rows = translate_items(
            shard_items(self.corpus, place),
            route,
            self.section.source,
            language,
            cache=cache,
            on_flag=self.section.on_flag,
            back=back,
            batch_size=self.section.batch_size,
            max_failures=self.max_failures,
        )
        return Shard(rows, sum(row.status == "failed" for row in rows))


def _routes(section: TranslateConfig) -> dict[str, tuple[Route, Route | None]]:
    """Target language -> the route there and, where asked for, the way back."""
    forward = make_routes(section.routes, section.source, section.options)
    return {target: (route, _back(section, target) if section.back else None) for target, route in forward.items()}


def _back(section: TranslateConfig, target: str) -> Route:
    """The same engines the other way round."""
    steps = parse_route(section.routes[target], section.source, target)
    text = " > ".join(f"{step.engine}:{step.target}-{step.source}" for step in reversed(steps))
    return make_route(text, target, section.source, section.options)


def _summary(stage: Stage, languages: tuple[str, ...], shards: int) -> dict[str, Any]:
    """Rows, statuses and flags by language, counted column by column."""
    counts = {code: (Counter[str](), Counter[str]()) for code in sorted(languages)}
    for place, code in enumerate(languages):
        statuses, flags = counts[code]
        for index in range(place * shards, (place + 1) * shards):
            table = read_table(stage.shard(index), ("status", "flags"))
            statuses.update(_counted(table["status"]))
            flags.update(_counted(pc.struct_field(pc.list_flatten(table["flags"]), "name")))
    return {
        "rows": sum(statuses.total() for statuses, _ in counts.values()),
        "languages": {
            code: {"statuses": dict(sorted(statuses.items())), "flags": dict(sorted(flags.items()))}
            for code, (statuses, flags) in counts.items()
        },
    }


def _counted(column: pa.ChunkedArray) -> dict[str, int]:
    return {found["values"]: found["counts"] for found in pc.value_counts(column).to_pylist()}
