"""From YAML text and ``--set`` overrides to a validated ``RunConfig``."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from mdialeval.config.run import RunConfig
from mdialeval.errors import ConfigError, nearest


def load(path: str | Path, overrides: Sequence[str] = ()) -> RunConfig:
    """Read and validate a configuration file.

    Args:
        path: a YAML 1.2 file.
        overrides: dotted assignments such as ``train.epochs=2``; the value is read as YAML.

    Raises:
        ConfigError: lists every problem, each with its dotted key and, for an unknown key, the nearest known one.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(
            f"no such configuration file; shipped ones are in configs/ (working folder: {Path.cwd()})", path
        ) from None
    except (IsADirectoryError, UnicodeDecodeError, PermissionError) as error:
        raise ConfigError(f"cannot be read as UTF-8 text: {error}", path) from None
    values = _yaml(text, path) or {}
    if not isinstance(values, dict):
        raise ConfigError(f"the file must hold a mapping of verbs to settings, not a {type(values).__name__}", path)
    return parse(values, overrides, folder=path.parent, origin=path)


def parse(
    values: Mapping[str, Any], overrides: Sequence[str] = (), *, folder: str | Path = ".", origin: Path | None = None
) -> RunConfig:
    """Validate a configuration given as a mapping; see ``load``.

    Args:
        values: section -> settings.
        overrides: dotted assignments.
        folder: what relative paths are relative to.
        origin: the file, for messages.
    """
    merged = _copy(values)
    problems = [p for override in overrides if (p := _apply(merged, override))]
    try:
        config = RunConfig.model_validate(merged, context={"folder": str(folder)})
    except ValidationError as error:
        problems += [_sentence(dict(e), merged) for e in error.errors()]
    if problems:
        raise ConfigError(problems, origin)
    return config


def _yaml(text: str, path: Path | None) -> Any:
    try:
        return YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ConfigError(f"{where}{getattr(error, 'problem', None) or error}", path) from None


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _apply(values: dict[str, Any], override: str) -> str | None:
    """Set one dotted key; a sentence where the override is malformed."""
    key, equals, text = override.partition("=")
    if not equals or not key:
        return f"--set {override}: write it as section.key=value"
    node: Any = values
    *parents, last = key.split(".")
    for part in parents:
        if isinstance(node, list) and part.isdecimal() and int(part) < len(node):
            node = node[int(part)]
        elif isinstance(node, dict):
            if not isinstance(node.get(part), (dict, list)):
                node[part] = {}
            node = node[part]
        else:
            return f"--set {override}: {part!r} is not an entry of a list of {len(node)}"
    if isinstance(node, list):
        if not (last.isdecimal() and int(last) < len(node)):
            return f"--set {override}: {last!r} is not an entry of a list of {len(node)}"
        node[int(last)] = _yaml(text, None)
    else:
        node[last] = _yaml(text, None)
    return None


def _sentence(error: dict[str, Any], values: Mapping[str, Any]) -> str:
    """One pydantic finding as a sentence for people."""
    location = [str(part) for part in error["loc"]]
    dotted = ".".join(location)
    if error["type"] == "extra_forbidden":
        known = _fields(location[:-1])
        return f"{dotted}: unknown key" + (f", {nearest(location[-1], known)}" if known else "")
    if error["type"] == "missing":
        return f"{dotted}: this key is needed"
    message = error["msg"].removeprefix("Value error, ")
    shown = error.get("input")
    return f"{dotted}: {message}" + (f" (found {shown!r})" if isinstance(shown, (str, int, float, bool)) else "")


def _fields(location: Sequence[str]) -> list[str]:
    """The known keys at a place of the configuration."""
    hint: Any = RunConfig
    for part in location:
        model = _model(hint)
        if model is not None and part in model.model_fields:
            hint = model.model_fields[part].annotation
    model = _model(hint)
    return list(model.model_fields) if model else []


def _model(hint: Any) -> type[BaseModel] | None:
    """The pydantic model inside an annotation such as ``list[Source] | None``."""
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return hint
    for argument in typing.get_args(hint):
        if (found := _model(argument)) is not None:
            return found
    return None
