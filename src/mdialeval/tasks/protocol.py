"""How a dimension becomes training pairs, and the table of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from mdialeval.records import Dialogue, Example, TrainingPair

TASKS: Mapping[str, str] = {
    "sensibleness": "mdialeval.tasks.sensibleness:Sensibleness",
    "understandability": "mdialeval.tasks.understandability:Understandability",
}


class Task(Protocol):
    """Makes labelled pairs from dialogues (self-supervised) or from examples that carry labels."""

    def pairs(self, items: Iterable[Dialogue | Example], seed: int) -> Iterator[TrainingPair]:
        """Training pairs, the same for the same items and seed."""
        ...
