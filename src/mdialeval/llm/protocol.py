"""What a chat back end is, and the table of back ends: one a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

CHAT_BACKENDS: Mapping[str, str] = {
    "openai": "mdialeval.llm.openai:OpenAIChat",
    "transformers": "mdialeval.llm.transformers:TransformersChat",
    "gguf": "mdialeval.llm.gguf:GgufChat",
    "given": "mdialeval.llm.given:GivenReplies",
    "dummy": "mdialeval.llm.dummy:DummyChat",
}

Finish = Literal["stop", "length", "refusal", "too_long", "no_probabilities", "failed"]


@dataclass(frozen=True, slots=True)
class Ask:
    """What a prompt is for; it names lines of the reply log and is no part of what is sent."""

    example_id: str
    language: str
    criterion: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request: the system message and the user message, already filled in.

    Attributes:
        answer: how the answer of a base model begins (``Score:``); chat models do not see it.
        scale: lowest and highest score.
        probabilities: whether the probabilities of the score tokens are wanted.
        sample: number of the repetition; another number is another request.
        ask: what it is for.
    """

    system: str
    user: str
    answer: str = ""
    scale: tuple[float, float] = (1.0, 5.0)
    probabilities: bool = False
    sample: int = 0
    ask: Ask | None = field(default=None, compare=False)

    def request(self) -> dict[str, Any]:
        """What the reply depends on, as JSON values: the key under which it is cached."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "ask"}


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply, or why there is none.

    Attributes:
        text: the reply; None where ``error`` says why there is none.
        probabilities: score token -> probability at the position of the score, where they were asked for and the reply
            has a score; tokens that the back end did not report are absent.
        error: empty where the call went well.
        finish: how it ended: ``length`` was cut, ``too_long`` is a prompt beyond the model's window,
            ``no_probabilities`` a server that does not report them.
    """

    text: str | None
    probabilities: Mapping[str, float] | None = None
    error: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish: Finish = "stop"

    def values(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


class ChatBackend(Protocol):
    """Completes prompts.  Same length, same order, no state between calls.

    Constructing one is cheap: models are loaded and servers asked at the first call, so that a run whose replies are
    all cached needs neither.

    Attributes:
        identity: back end, model and everything else that a reply depends on beside the prompt.  No keys.
        joined: whether a reply belongs to the example that a prompt is for (a file of replies) instead of to its text;
            such replies are neither shared between equal prompts nor cached.
    """

    identity: str
    joined: bool

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """One completion a prompt.

        Raises:
            BackendError: no prompt can be completed (no such model, a key that is refused).
        """
        ...


@runtime_checkable
class StreamsReplies(Protocol):
    """A back end that hands over each reply as it arrives, so that a killed run keeps what was answered."""

    def stream(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Completion]]:
        """(index, completion) in any order, every index once."""
        ...
