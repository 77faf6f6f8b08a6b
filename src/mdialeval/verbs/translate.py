"""``translate``: the corpus into every target language; one shard a language and corpus shard."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mdialeval.cache import Cache
from mdialeval.config.run import RunConfig
from mdialeval.config.translate import TranslateConfig
from mdialeval.errors import ConfigError
from mdialeval.pipeline import Progress, Shard, is_main_rank, run_shards
from mdialeval.records import Translation
from mdialeval.store import Run, Stage
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
    factory = _Factory(section, corpus, tuple(section.routes), shards, cache, config.execution.max_failures)
    count = shards * len(section.routes)
    run_shards(stage, count, factory, Translation, execution=config.execution, progress=progress)
    if not stage.done and is_main_rank():
        stage.finish(_summary(stage))
    return stage


def shard_of(corpus: Stage, languages: tuple[str, ...], language: str, index: int) -> int:
    """Which shard of the stage holds one language of one corpus shard."""
    return languages.index(language) * len(corpus.shards()) + index


@dataclass(frozen=True, slots=True)
class _Factory:
    """Loads the routes once a worker."""

    section: TranslateConfig
    corpus: Stage
    languages: tuple[str, ...]
    shards: int
    cache: Path
    max_failures: int

    def __call__(self) -> Callable[[int], Shard]:
        routes = _routes(self.section)
        cache = Cache(self.cache, "translate")
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


def _summary(stage: Stage) -> dict[str, Any]:
    """Rows, statuses and flags by language."""
    languages: dict[str, dict[str, Counter[str]]] = {}
    for row in stage.read(Translation):
        counts = languages.setdefault(row.language, {"statuses": Counter(), "flags": Counter()})
        counts["statuses"][row.status] += 1
        counts["flags"].update(flag.name for flag in row.flags)
    return {
        "rows": sum(sum(counts["statuses"].values()) for counts in languages.values()),
        "languages": {
            code: {name: dict(sorted(counter.items())) for name, counter in counts.items()}
            for code, counts in sorted(languages.items())
        },
    }
