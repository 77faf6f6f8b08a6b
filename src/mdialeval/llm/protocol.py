"""What a chat back end is, and the table of back ends: one a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

CHAT_BACKENDS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request: the system message and the user message, already filled in."""

    system: str
    user: str


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply, or why there is none.

    Attributes:
        text: the reply; None where ``error`` says why.
        probabilities: score token -> probability at the position of the score, where the back end gives them.
        error: empty where the call went well.
    """

    text: str | None
    probabilities: Mapping[str, float] | None = None
    error: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0


class ChatBackend(Protocol):
    """Completes prompts.  Same length, same order, no state between calls."""

    identity: str

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """One completion a prompt."""
        ...
