"""Corpora in, records out: ``read`` streams the dialogues or rated examples of a data set in any known format."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from mdialeval.config.corpus import Source
from mdialeval.errors import ConfigError, DataError
from mdialeval.readers.protocol import READERS, Reader
from mdialeval.records import Dialogue, Example
from mdialeval.registry import create, resolve

logger = logging.getLogger(__name__)


def read(source: Source, language: str = "en") -> Iterator[Dialogue | Example]:
    """Stream the items of a data set, in file order, at most ``source.limit`` of them.

    Args:
        source: reader, files and options.
        language: of files that name no language themselves.

    Raises:
        ConfigError: unknown reader or option.
        DataError: names file, row, field and fix; also an empty file, and two items with one id in one language.
    """
    reader = reader_of(source, language)
    seen: set[int] = set()  # hashes of (language, id): millions of rows must fit into memory
    total = 0
    for paths in _calls(reader, source):
        number = 0
        with _closing(reader.read(paths)) as items:
            for number, item in enumerate(items, start=1):
                if (key := hash((item.language, item.id))) in seen:
                    _check_first(reader, source, item, (paths[0], number))
                seen.add(key)
                yield item
                total += 1
                if total == source.limit:
                    break
        if not number:
            raise DataError("holds no dialogue and no rated example: is it empty, or is this another format?", paths[0])
        if total == source.limit:
            break
    logger.info("%s: %d items read by the reader %s", source.title, total, source.reader)


def reader_of(source: Source, language: str = "en") -> Reader:
    """The reader of a data set with its options.

    Raises:
        ConfigError: unknown reader, unknown option or an option of the wrong type; all of them are listed.
    """
    takes = inspect.signature(resolve("reader", READERS, source.reader)).parameters
    options: dict[str, Any] = dict(source.options)
    if "language" in takes and isinstance(takes["language"].default, str):
        options.setdefault("language", language)
    try:
        return cast(Reader, create("reader", READERS, source.reader, options))
    except ValidationError as error:
        found = [(".".join(map(str, e["loc"])), e["msg"], e["input"]) for e in error.errors()]
        problems = [f"reader {source.reader!r}: option {key}: {what} (found {given!r})" for key, what, given in found]
        raise ConfigError(problems) from None


@contextmanager
def _closing(items: Iterator[Dialogue | Example]) -> Iterator[Iterator[Dialogue | Example]]:
    """Close a generator that is left early: it still reports the labels that it found outside their scale."""
    try:
        yield items
    finally:
        if isinstance(items, Generator):
            items.close()


def _calls(reader: Reader, source: Source) -> list[list[Path]]:
    """The paths of each call of the reader: one a call, or all where they belong together."""
    return [list(source.path)] if getattr(reader, "joint", False) or not source.path else [[p] for p in source.path]


def _check_first(reader: Reader, source: Source, item: Dialogue | Example, here: tuple[Path, int]) -> None:
    """Read again up to the first item of this id and language, which should be the one ``here``.

    Raises:
        DataError: it is another one, and where that stands.
    """
    for paths in _calls(reader, source):
        with _closing(reader.read(paths)) as items:
            for number, other in enumerate(items, start=1):
                if (other.language, other.id) == (item.language, item.id):
                    if (paths[0], number) == here:  # only the hash of another id was the same
                        return
                    problem = f"item {here[1]} has the id {item.id!r} in {item.language}, and so has item {number}"
                    where = f" of {paths[0]}" if paths[0] != here[0] else ""
                    raise DataError(f"{problem}{where}: ids are unique inside a data set and language", here[0])
