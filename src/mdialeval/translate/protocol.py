"""What a translation engine is, and the table of engines: one engine a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from mdialeval.errors import BackendError

TRANSLATORS: Mapping[str, str] = {
    "firefox": "mdialeval.translate.firefox:Firefox",
    "apertium": "mdialeval.translate.apertium:Apertium",
    "transformers": "mdialeval.translate.transformers:TransformersTranslator",
    "ctranslate2": "mdialeval.translate.ctranslate2:CTranslate2Translator",
    "openai": "mdialeval.translate.openai:OpenAITranslator",
    "given": "mdialeval.translate.given:Given",
    "dummy": "mdialeval.translate.dummy:Dummy",
}

Pairs = frozenset[tuple[str, str]]
"""Language pairs as canonical codes, (source, target)."""


class Translator(Protocol):
    """Translates sentences: same length, same order, no state between calls; batches, caches, retries are outside.

    An engine may also have these, all optional:

    - ``assets(**options)``, a classmethod: what it needs, as ``registry.Asset``, without loading anything;
    - ``pairs(**options)``, a classmethod: the language pairs that it knows of (None = the model decides), cheaply;
    - ``placeholders = True``: words such as ``XQ1X`` come through unchanged, so that masks can be protected;
    - ``least_batch``: calls with fewer sentences than this are wasteful, whatever the configuration's batch size;
    - ``retry(texts, source, target)``: as ``translate``, but no n-gram may repeat (``Retrying``);
    - ``attempt(texts, source, target)``: the same with an error in the place of each sentence that failed
      (``Attempting``);
    - ``translate_turns(ids, texts, source, target)``: for whole turns with their ids (``TurnTranslator``).

    Attributes:
        identity: engine, model and version: part of every cache key and signature.
    """

    @property
    def identity(self) -> str:
        """Engine, model and version."""
        ...

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Translate sentences between two languages given as canonical codes.

        Raises:
            BackendError: the engine failed; nothing is returned for the batch.
            ConfigError: the engine has no such pair of languages.
        """
        ...


@runtime_checkable
class Retrying(Protocol):
    """An engine that can translate again with repeated n-grams forbidden."""

    def retry(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """As ``Translator.translate``, without repeating any n-gram of three tokens."""
        ...


@runtime_checkable
class Attempting(Protocol):
    """An engine whose sentences fail one by one, such as a paid endpoint: none is asked twice to find the bad one."""

    def attempt(self, texts: Sequence[str], source: str, target: str) -> list[str | BackendError]:
        """As ``Translator.translate``, with the error in the place of a sentence that failed."""
        ...


@runtime_checkable
class TurnTranslator(Protocol):
    """An engine that answers for whole turns, such as given translations; None where it has none."""

    def translate_turns(self, ids: Sequence[str], texts: Sequence[str], source: str, target: str) -> list[str | None]:
        """One translation a turn; ids are ``records.turn_id``."""
        ...
