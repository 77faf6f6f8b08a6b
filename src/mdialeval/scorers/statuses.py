"""Which examples a response scorer can score at all."""

from __future__ import annotations

from mdialeval.records import Example, PredictionStatus


def usable(example: Example, needs_context: bool = False) -> PredictionStatus:
    """``ok``, ``empty`` (no text to score) or ``unsupported`` (a whole dialogue)."""
    if example.response is None:
        return "unsupported"
    if not example.response.text.strip():
        return "empty"
    if needs_context and not any(turn.text.strip() for turn in example.context):
        return "empty"
    return "ok"
