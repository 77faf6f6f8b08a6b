"""``list``: the names that a configuration can use, by kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import BaseModel

from mdialeval.config import RunConfig
from mdialeval.errors import ConfigError, nearest
from mdialeval.graphs.protocol import PARSERS
from mdialeval.llm.protocol import CHAT_BACKENDS
from mdialeval.rank.protocol import ESTIMATORS
from mdialeval.readers.protocol import READERS
from mdialeval.scorers.protocol import SCORERS
from mdialeval.tasks.protocol import TASKS
from mdialeval.translate.checks import FLAGS
from mdialeval.translate.protocol import TRANSLATORS

KINDS: Mapping[str, Mapping[str, str]] = {
    "readers": READERS,
    "engines": TRANSLATORS,
    "estimators": ESTIMATORS,
    "parsers": PARSERS,
    "tasks": TASKS,
    "scorers": SCORERS,
    "chat": CHAT_BACKENDS,
}


def catalogue(kind: str | None = None) -> dict[str, list[tuple[str, str]]]:
    """Names and one line about each, of one kind or of all.

    Raises:
        ConfigError: unknown kind.
    """
    tables = {name: [(entry, _about(target)) for entry, target in table.items()] for name, table in KINDS.items()}
    tables["flags"] = [(name, f"{flag.policy}: {flag.rule}") for name, flag in FLAGS.items()]
    tables["settings"] = list(_settings(RunConfig, ""))
    if kind is None:
        return tables
    if kind not in tables:
        raise ConfigError(f"unknown kind {kind!r}: {nearest(kind, tables)}")
    return {kind: tables[kind]}


def _settings(section: type[BaseModel], prefix: str) -> Iterator[tuple[str, str]]:
    """Every key of a configuration with its default and description."""
    for name, field in section.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _settings(inner, f"{prefix}{name}.")
        else:
            default = "" if field.is_required() else f"[{field.get_default(call_default_factory=True)}] "
            yield f"{prefix}{name}", f"{default}{field.description or ''}".strip()


def _about(target: str) -> str:
    """The first sentence of the module that holds a back end, read without importing it."""
    import ast
    from importlib import util
    from pathlib import Path

    spec = util.find_spec(target.partition(":")[0])
    if spec is None or spec.origin is None:
        return ""
    text = ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]
