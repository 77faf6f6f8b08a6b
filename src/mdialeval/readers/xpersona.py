"""XPersona (Lin et al., 2020): PersonaChat in Chinese, French, Indonesian, Italian, Japanese and Korean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic.dataclasses import dataclass

from mdialeval.errors import ConfigError, DataError
from mdialeval.languages import canonical
from mdialeval.readers.opening import json_rows
from mdialeval.readers.protocol import OPTIONS
from mdialeval.records import Dialogue, Turn

_OWN_CODES = {"jp": "ja"}
"""The file names say ``Jp`` for Japanese."""


@dataclass(frozen=True, kw_only=True, config=OPTIONS)
class XPersona:
    """Reads ``Zh_persona_train_corrected.json``: a list of ``{"persona": [...], "dialogue": [[user, system], ...]}``.

    Attributes:
        language: seen from the beginning of the file name where None.
    """

    language: str | None = None
    licence = "MIT"

    def read(self, paths: Sequence[Path]) -> Iterator[Dialogue]:
        """Stream the dialogues.

        Raises:
            DataError: no language, or a dialogue that is not a list of pairs of texts.
        """
        for path in paths:
            language = self._language(path)
            for number, (line, row) in enumerate(json_rows(path), start=1):
                pairs = row.get("dialogue")
                if not isinstance(pairs, list) or not pairs or not all(map(_is_pair, pairs)):
                    raise DataError("should be a list of pairs of texts", path, line, "dialogue")
                turns = [Turn(text.strip(), f"speaker{i + 1}") for pair in pairs for i, text in enumerate(pair)]
                yield Dialogue(f"{path.stem}-{number}", language, tuple(turn for turn in turns if turn.text))

    def _language(self, path: Path) -> str:
        if self.language is not None:
            return canonical(self.language)
        code, underscore, _ = path.name.lower().partition("_")
        try:
            if underscore and len(code) == 2:
                return canonical(_OWN_CODES.get(code, code))
        except ConfigError:
            pass
        raise DataError("the file name (Zh_...) does not tell the language: set the option language", path)


def _is_pair(pair: object) -> bool:
    return isinstance(pair, list) and 1 <= len(pair) <= 2 and all(isinstance(text, str) for text in pair)
