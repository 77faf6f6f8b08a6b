"""PersonaChat and ConvAI2 (Zhang et al., ACL 2018) in ParlAI's numbered text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic.dataclasses import dataclass

from mdialeval.errors import DataError
from mdialeval.languages import canonical
from mdialeval.readers.opening import plain_lines
from mdialeval.readers.protocol import OPTIONS
from mdialeval.records import Dialogue, Turn

_LINE = re.compile(r"(\d+) (.*)", re.DOTALL)
_PERSONA = ("your persona:", "partner's persona:")
SILENCE = "__SILENCE__"


@dataclass(frozen=True, kw_only=True, config=OPTIONS)
class PersonaChat:
    """Reads ``1 text<TAB>reply<TAB><TAB>candidates``; line 1 begins a dialogue, persona lines are left out."""

    language: str = "en"
    licence = "MIT (ParlAI); the crowd's texts: none stated"

    def read(self, paths: Sequence[Path]) -> Iterator[Dialogue]:
        """Stream the dialogues; the speakers take turns.

        Raises:
            DataError: a line without its number, or a dialogue of zero turns.
        """
        language = canonical(self.language)
        for path in paths:
            number, begun, turns = 0, 0, list[Turn]()
            for line, text in plain_lines(path):
                match = _LINE.match(text)
                if match is None:
                    if text.strip():
                        raise DataError("expected '1 text<TAB>reply': every line begins with its number", path, line)
                    continue
                if int(match[1]) == 1 and begun:
                    yield _dialogue(path, begun, number, language, turns)
                if int(match[1]) == 1:
                    number, begun, turns = number + 1, line, []
                if not match[2].startswith(_PERSONA):
                    turns += _turns(match[2])
            if begun:
                yield _dialogue(path, begun, number, language, turns)


def _turns(text: str) -> list[Turn]:
    """The two turns of a line; candidates follow after an empty field."""
    said = zip(("speaker1", "speaker2"), text.split("\t")[:2], strict=False)
    return [Turn(turn.strip(), speaker) for speaker, turn in said if turn.strip() and turn.strip() != SILENCE]


def _dialogue(path: Path, line: int, number: int, language: str, turns: list[Turn]) -> Dialogue:
    if not turns:
        raise DataError("the dialogue that begins here has zero turns", path, line)
    return Dialogue(f"{path.stem}-{number}", language, tuple(turns))
