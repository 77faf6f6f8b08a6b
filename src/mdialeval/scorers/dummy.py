"""A deterministic scorer without a model, for tests, documentation and notebooks."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from mdialeval.records import Example, Prediction
from mdialeval.scorers.statuses import usable
from mdialeval.signature import signature_line, versions


class Dummy:
    """A number in [0, 1) from the hash of the text; it means nothing.

    Args:
        dimension: what it pretends to measure.
    """

    name = "dummy"

    def __init__(self, dimension: str = "overall") -> None:
        self.dimensions = (dimension,)
        self.signature = signature_line({"scorer": "dummy", "dimension": dimension, **versions()})

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """One prediction an example."""
        return [self._one(example) for example in examples]

    def _one(self, example: Example) -> Prediction:
        status = usable(example)
        texts = [turn.text for turn in (*example.context, *((example.response,) if example.response else ()))]
        digest = hashlib.sha256("\x1f".join(texts).encode("utf-8", "surrogatepass")).digest()
        score = int.from_bytes(digest[:6], "big") / 2**48 if status == "ok" else None
        return Prediction(example.id, example.language, self.name, self.dimensions[0], score, status)
