"""``parse``: the English turns of the corpus as semantic graphs, shared by all translations of a turn."""

from __future__ import annotations

import functools
import json
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mdialeval.cache import Cache, on_this_host
from mdialeval.config.parse import ParseConfig
from mdialeval.config.run import RunConfig
from mdialeval.errors import DataError
from mdialeval.graphs.parsing import parse_texts
from mdialeval.graphs.protocol import PARSERS, GraphParser
from mdialeval.pipeline import Progress, Shard, complete, run_shards
from mdialeval.records import Dialogue, Example, Graph, turn_id, turns_of
from mdialeval.registry import create
from mdialeval.store import Run, Stage
from mdialeval.verbs.read import shard_items

VERSION = 2
MOST_REASONS = 10
CACHE = "parse.sqlite"
PIVOT = "en"


def parse(config: RunConfig, run: Run, corpus: Stage, progress: Progress) -> Stage:
    """Parse every English turn of a ``read`` stage; one graph a turn with the turn's id.

    Raises:
        DataError: the corpus is not in English: graphs stand on the English side alone.
    """
    languages = corpus.summary()["languages"]
    if PIVOT not in languages:
        raise DataError(
            f"graphs are parsed on the English side, and this corpus is in {', '.join(languages)}: "
            "parse the English originals; their translations share the graphs",
            field="language",
        )
    parser = _parser(_key(config.parse))
    settings = {**config.parse.content("options"), "parser": parser.identity}
    stage = run.stage("parse", VERSION, settings, {"corpus": corpus.fingerprint})
    factory = _Factory(config.parse, corpus, run.folder.parent / CACHE, socket.gethostname())
    run_shards(stage, len(corpus.shards()), factory, Graph, execution=config.execution, progress=progress)
    complete(stage, lambda: stage.finish(_summary(stage, parser.identity)))
    return stage


def _summary(stage: Stage, identity: str) -> dict[str, Any]:
    statuses: Counter[str] = Counter()
    partial: Counter[str] = Counter()  # valid graphs that hold less than their text, by the parser's reason
    for graph in stage.read(Graph):
        statuses[graph.status] += 1
        if graph.status == "ok" and graph.detail:
            partial[graph.detail] += 1
    total = sum(statuses.values())
    usable = statuses["ok"] + statuses["truncated"]
    return {
        "rows": total,
        "parser": identity,
        "statuses": dict(sorted(statuses.items())),
        "coverage": f"{usable} of {total}",
        "partial": dict(partial.most_common(MOST_REASONS)),
    }


def parse_more(config: RunConfig, run: Run, texts: Sequence[str]) -> list[Graph]:
    """Graphs of English texts that no ``read`` stage holds, in order, through the same parser and cache."""
    if not texts:
        return []
    parser = _parser(_key(config.parse))
    with Cache(run.folder.parent / CACHE, parser.identity) as cache:
        return parse_texts(parser, texts, cache, config.parse.batch_size)


def _key(section: ParseConfig) -> str:
    return json.dumps([section.parser, section.options], sort_keys=True)


@functools.lru_cache(maxsize=1)
def _parser(key: str) -> GraphParser:
    """The parser behind its name and options as JSON; one stays loaded in a process."""
    name, options = json.loads(key)
    made: GraphParser = create("graph parser", PARSERS, name, options)
    return made


@dataclass(frozen=True, slots=True)
class _Factory:
    """Loads the parser once a worker."""

    section: ParseConfig
    corpus: Stage
    cache: Path
    home: str  # the machine whose cache it is

    def __call__(self) -> Callable[[int], Shard]:
        parser = _parser(_key(self.section))
        return functools.partial(self._shard, parser, Cache(on_this_host(self.cache, self.home), parser.identity))

    def _shard(self, parser: Any, cache: Cache, index: int) -> Shard:
        turns = list(_english_turns(shard_items(self.corpus, index)))
        ids = [name for name, _ in turns]
        if hasattr(parser, "by_id"):
            graphs = parser.by_id(ids) if ids else []
        else:
            graphs = parse_texts(parser, [text for _, text in turns], cache, self.section.batch_size)
        named = [replace(graph, id=name) for graph, name in zip(graphs, ids, strict=True)]
        return Shard(named, sum(graph.status == "failed" for graph in named))


def _english_turns(items: Iterable[Dialogue | Example]) -> Iterable[tuple[str, str]]:
    """(turn id, text) of every English turn, each id once."""
    for item in items:
        if item.language == PIVOT:
            for index, turn in enumerate(turns_of(item)):
                yield turn_id(item.id, index), turn.text
