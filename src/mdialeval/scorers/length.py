"""The length baseline: what an evaluator must beat before it can claim to have read the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from mdialeval.errors import ConfigError
from mdialeval.records import Example, Prediction
from mdialeval.scorers.statuses import usable
from mdialeval.signature import signature_line, versions


class Length:
    """Characters of the response, blanks not counted; longer is higher, or lower with ``direction: shorter``."""

    name = "length"
    dimensions = ("length",)

    def __init__(self, direction: Literal["longer", "shorter"] = "longer") -> None:
        if direction not in ("longer", "shorter"):
            raise ConfigError(f"scorer 'length': direction is {direction!r}: use longer or shorter")
        self._sign = 1.0 if direction == "longer" else -1.0
        self.signature = signature_line({"scorer": "length", "direction": direction, **versions()})

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """One prediction an example."""
        return [self._one(example) for example in examples]

    def _one(self, example: Example) -> Prediction:
        status = usable(example)
        text = example.response.text if example.response is not None else ""
        score = self._sign * len("".join(text.split())) if status == "ok" else None
        return Prediction(example.id, example.language, self.name, "length", score, status)
