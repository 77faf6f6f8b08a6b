"""ConTurE (Ghazarian et al., 2021): 119 chats of DSTC9, every response rated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic.dataclasses import dataclass

from mdialeval.errors import DataError
from mdialeval.languages import canonical
from mdialeval.readers.labels import LabelCheck, Scale
from mdialeval.readers.markup import labelled_turn
from mdialeval.readers.opening import json_rows
from mdialeval.readers.protocol import OPTIONS
from mdialeval.records import Example, Turn

SPEAKERS = ("User", "Chatbot")
RATING = "overall impression"


@dataclass(frozen=True, kw_only=True, config=OPTIONS)
class ConTurE:
    """Reads ``data.json``: one example a response of the chatbot; ``overall`` is 0 (dislike), 1 or 2 (like).

    Some responses are empty (the chatbot failed); they stay, since they were rated, and are left out of later contexts.
    """

    language: str = "en"
    outside: Literal["error", "drop"] = "error"
    licence = "CC BY 4.0"
    scales: ClassVar[Mapping[str, Scale]] = {"overall": (0.0, 2.0)}

    def read(self, paths: Sequence[Path]) -> Iterator[Example]:
        """Stream the examples.

        Raises:
            DataError: turns in another form, or a rating outside its scale.
        """
        language = canonical(self.language)
        for path in paths:
            with LabelCheck(path, self.scales, self.outside) as labels:
                for line, row in json_rows(path):
                    group = f"{path.stem}-{row.get('dialog_id', line)}"
                    context: list[Turn] = []
                    for number, (user, chatbot, rating) in enumerate(_exchanges(row, path, line)):
                        context += [user] if user.text else []
                        ratings = labels.values({"overall": rating}, line)
                        name = f"{group}-{number}"
                        yield Example(name, language, tuple(context), chatbot, ratings, group, "chatbot")
                        context += [chatbot] if chatbot.text else []


def _exchanges(row: Mapping[str, Any], path: Path, line: int) -> Iterator[tuple[Turn, Turn, Any]]:
    turns = row.get("turns")
    if not isinstance(turns, list) or not turns:
        raise DataError("should be a list of exchanges", path, line, "turns")
    for turn in turns:
        user, chatbot = (turn.get("user"), turn.get("chatbot")) if isinstance(turn, dict) else (None, None)
        if not isinstance(user, str) or not isinstance(chatbot, str):
            raise DataError("an exchange holds the texts user and chatbot", path, line, "turns")
        yield labelled_turn(user, SPEAKERS), labelled_turn(chatbot, SPEAKERS), turn.get(RATING)
