"""A deterministic judge without a model, for tests, documentation and notebooks."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from mdialeval.llm.protocol import Completion, Prompt
from mdialeval.llm.tokens import score_labels


class DummyChat:
    """Answers with a whole number on the scale, drawn from the hash of the prompt; it means nothing.

    Args:
        reply: answer with this text instead, whatever the prompt.
    """

    joined = False

    def __init__(self, reply: str | None = None) -> None:
        self._reply = reply
        self.identity = "backend:dummy" + (f"|reply:{reply}" if reply is not None else "")

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """One reply a prompt."""
        return [self._one(prompt) for prompt in prompts]

    def _one(self, prompt: Prompt) -> Completion:
        low, high = prompt.scale
        text = f"{prompt.system}\n{prompt.user}\n{prompt.sample}"
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        choices = int(high - low) + 1
        reply = str(int(low) + digest[0] % choices) if self._reply is None else self._reply
        probabilities = None
        if prompt.probabilities and self._reply is None:
            labels = score_labels(prompt.scale)
            weights = [1 + digest[1 + i] for i in range(len(labels))]
            probabilities = {label: weight / sum(weights) for label, weight in zip(labels, weights, strict=True)}
        return Completion(reply, probabilities, "", len(text.split()), 1)
