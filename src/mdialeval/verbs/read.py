"""``read``: a corpus in any format to shards of records, the input of every later stage."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from mdialeval.config.corpus import Source
from mdialeval.config.run import RunConfig
from mdialeval.errors import ConfigError, DataError
from mdialeval.pipeline import complete
from mdialeval.readers import read
from mdialeval.records import Dialogue, Example, turns_of
from mdialeval.signature import folder_hash
from mdialeval.store import Run, Stage
from mdialeval.tables import read_parquet

VERSION = 1
RECORDS: dict[str, type[Dialogue] | type[Example]] = {"Dialogue": Dialogue, "Example": Example}


def corpus_stage(config: RunConfig, run: Run) -> Stage:
    """Read the corpus of a run.

    Raises:
        ConfigError: the configuration names no corpus.
        DataError: the corpus is empty or broken.
    """
    if config.corpus is None:
        raise ConfigError("corpus: this key is needed (reader and path of the English dialogues)")
    return source_stage(config.corpus, config.translate.source, config.execution.shard_size, run)


def source_stage(source: Source, language: str, shard_size: int, run: Run) -> Stage:
    """Read one data set into shards of ``shard_size`` items; done once for the same files and options."""
    missing = [str(path) for path in source.path if not path.exists() and source.reader != "huggingface"]
    if missing:
        raise DataError("no such file or folder; paths are relative to the YAML file or the working folder", missing[0])
    settings = {**source.content("name", "labels"), "language": language, "shard_size": shard_size}
    stage = run.stage("read", VERSION, settings, _inputs(source))
    complete(stage, functools.partial(_read, stage, source, language, shard_size))
    return stage


def _inputs(source: Source) -> dict[str, str]:
    """File name -> hash; numbered where there are several, whose order counts and whose names may be the same."""
    several = len(source.path) > 1
    return {
        f"{place} {path.name}" if several else path.name: folder_hash(path)
        for place, path in enumerate(source.path, start=1)
        if path.exists()
    }


def _read(stage: Stage, source: Source, language: str, shard_size: int) -> None:
    record: type | None = None
    rows = turns = 0
    languages: Counter[str] = Counter()
    for index, items in enumerate(_chunks(read(source, language), shard_size)):
        record = record or type(items[0])
        if {type(item) for item in items} != {record}:
            raise DataError("dialogues and rated examples are mixed in one data set: split the file", source.where)
        stage.write(index, items, record)
        rows += len(items)
        turns += sum(len(turns_of(item)) for item in items)
        languages.update(item.language for item in items)
    if record is None:
        raise DataError("holds no dialogue and no example: check the reader and its columns", source.where)
    stage.finish(
        {"record": record.__name__, "rows": rows, "turns": turns, "languages": dict(sorted(languages.items()))}
    )


def items_of(stage: Stage) -> Iterable[Dialogue | Example]:
    """Stream the items of a finished ``read`` stage."""
    return stage.read(RECORDS[stage.summary()["record"]])


def shard_items(stage: Stage, index: int) -> list[Dialogue | Example]:
    """The items of one shard of a finished ``read`` stage."""
    return list(read_parquet(stage.shard(index), RECORDS[stage.summary()["record"]]))


def run_of(config: RunConfig) -> Run:
    """The folder of a run, below ``config.runs``."""
    return Run(Path(config.runs) / config.run)


def _chunks(items: Iterable[Dialogue | Example], size: int) -> Iterable[list[Dialogue | Example]]:
    stream = iter(items)
    while chunk := list(itertools.islice(stream, size)):
        yield chunk
