"""Topical-Chat (Gopalakrishnan et al., Interspeech 2019): one JSON object, conversation id -> conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic.dataclasses import dataclass

from mdialeval.errors import DataError
from mdialeval.languages import canonical
from mdialeval.readers.opening import counted, load_json
from mdialeval.readers.protocol import OPTIONS
from mdialeval.records import Dialogue, Turn


@dataclass(frozen=True, kw_only=True, config=OPTIONS)
class TopicalChat:
    """Reads ``{"t_...": {"content": [{"agent": "agent_1", "message": ...}, ...]}}``; one speaker may go on talking."""

    language: str = "en"
    licence = "CDLA-Sharing-1.0"

    def read(self, paths: Sequence[Path]) -> Iterator[Dialogue]:
        """Stream the dialogues.

        Raises:
            DataError: another form, or a message that is no text; ``line`` counts conversations.
        """
        language = canonical(self.language)
        for path in paths:
            conversations = load_json(path)
            if not isinstance(conversations, dict):
                raise DataError("expected one JSON object: conversation id -> conversation", path)
            for number, (name, conversation) in enumerate(counted(path, conversations.items()), start=1):
                content = conversation.get("content") if isinstance(conversation, dict) else None
                if not isinstance(content, list) or not content:
                    raise DataError(f"conversation {name!r} has no messages", path, number, "content")
                yield Dialogue(name, language, tuple(_turn(message, path, number) for message in content))


def _turn(message: object, path: Path, number: int) -> Turn:
    text = message.get("message") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(text, str) or not text.strip():
        raise DataError("a message should be an object with a text that is not empty", path, number, "message")
    return Turn(text.strip(), message.get("agent"))
