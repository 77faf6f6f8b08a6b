"""What a scorer is, and the table of scorers: evaluators, LLM prompts and baselines share one signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from mdialeval.records import Example, Prediction

SCORERS: Mapping[str, str] = {
    "evaluator": "mdialeval.scorers.evaluator:EvaluatorScorer",
    "onnx": "mdialeval.scorers.onnx:OnnxScorer",
    "cosine": "mdialeval.scorers.cosine:Cosine",
    "length": "mdialeval.scorers.length:Length",
    "given": "mdialeval.scorers.given:Given",
    "llm": "mdialeval.scorers.llm:LlmScorer",
    "likelihood": "mdialeval.scorers.likelihood:Likelihood",
    "mlm": "mdialeval.scorers.mlm:MaskedLM",
    "dummy": "mdialeval.scorers.dummy:Dummy",
}


class Scorer(Protocol):
    """Scores responses in context.  Same length times dimensions, in the examples' order, no state between calls.

    Attributes:
        name: what reports call it.
        dimensions: what it measures; one Prediction an example and dimension.
        signature: how its numbers are made, in one line.
    """

    name: str
    dimensions: tuple[str, ...]
    signature: str

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Predictions, example by example; a failure is a status, never a number."""
        ...


@runtime_checkable
class AsksAgain(Protocol):
    """A scorer whose failures may pass (a rate limit, a time-out): a later run asks for those rows alone.

    Attributes:
        passing: statuses of calls that failed.
        refused: further statuses that another try may change, where the user wants it.
    """

    passing: frozenset[str]
    refused: frozenset[str]

    def score_rows(self, rows: Sequence[tuple[Example, str]]) -> list[Prediction]:
        """Predictions of (example, dimension) pairs; same length and order."""
        ...
