"""What a translation engine is, and the table of engines: one engine a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

TRANSLATORS: Mapping[str, str] = {}


class Translator(Protocol):
    """Translates sentences.  Same length, same order, no state between calls; batching, caching and retrying are outside.

    Attributes:
        identity: engine, model and version: part of every cache key and signature.
    """

    identity: str

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Translate sentences between two languages given as canonical codes.

        Raises:
            BackendError: the engine failed; nothing is returned for the batch.
            ConfigError: the engine has no such pair of languages.
        """
        ...
