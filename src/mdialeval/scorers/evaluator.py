"""Trained evaluators as one scorer: one prediction an example and evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mdialeval.errors import ConfigError, DataError
from mdialeval.graphs.turns import read_graphs, say_if_none
from mdialeval.model.evaluator import Evaluator
from mdialeval.model.features import FrozenFeatures
from mdialeval.model.likelihood import reader_assets
from mdialeval.model.precision import Precision
from mdialeval.model.saved import read_settings
from mdialeval.records import Example, Prediction
from mdialeval.registry import Asset


class EvaluatorScorer:
    """Scores with one or several evaluator folders, each for its own dimension.

    Args:
        folder: of ``train``, or several.
        encoder: where the base encoder lies, if not where it was at training.
        graphs: the semantic graphs of the turns, for evaluators with a graph branch: the folder of a ``parse`` stage or
            a PENMAN file whose ``::id`` are turn ids (``e7#0``); without them every row is scored as one without graph.
        batch_size, device, precision: see ``model.evaluator.Evaluator``.
        likelihood: where the language model lies that the evaluators also read, if not where it was at training.
        likelihood_cache: a folder for what language models say of texts, which is slow to compute and the same for many
            evaluators; not kept where None.

    Raises:
        ConfigError: two folders measure the same dimension.
        DataError: a folder holds no evaluator.
    """

    name = "evaluator"

    def __init__(
        self,
        folder: str | Path | Sequence[str | Path],
        encoder: str | None = None,
        graphs: str | Path | None = None,
        batch_size: int = 32,
        device: str = "auto",
        precision: Precision = "auto",
        likelihood: str | None = None,
        likelihood_cache: str | Path | None = None,
    ) -> None:
        folders = [folder] if isinstance(folder, (str, Path)) else list(folder)
        if not folders:
            raise ConfigError("scorer 'evaluator': folder is empty: name at least one folder that `train` made")
        dimensions = [read_settings(f).dimension for f in folders]
        if doubled := {d for d in dimensions if dimensions.count(d) > 1}:
            raise ConfigError(
                f"scorer 'evaluator': two folders measure {', '.join(sorted(doubled))}: use one scorer entry for each"
            )
        self._evaluators = [
            Evaluator.from_pretrained(
                f, encoder, device=device, precision=precision, batch_size=batch_size, likelihood=likelihood
            )
            for f in folders
        ]
        kept = FrozenFeatures(Path(likelihood_cache)) if likelihood_cache is not None else None
        for evaluator in self._evaluators:
            evaluator.readers = self._evaluators[0].readers  # one model in memory for all
            if kept is not None:
                evaluator.figures = kept
                if evaluator.settings.architecture.reads == "likelihood":
                    evaluator.features = kept
        self._graphs = read_graphs(graphs) if graphs is not None else None
        self._branched = any(e.settings.architecture.graph is not None for e in self._evaluators)
        self.dimensions = tuple(dimensions)
        self.signature = " ".join(evaluator.signature for evaluator in self._evaluators)

    @staticmethod
    def assets(
        folder: str | Path | Sequence[str | Path] = (),
        encoder: str | None = None,
        likelihood: str | None = None,
        **_: Any,
    ) -> list[Asset]:
        """The folders and their base encoders."""
        found: list[Asset] = []
        for each in [folder] if isinstance(folder, (str, Path)) else folder:
            try:
                settings = read_settings(each)
            except DataError as error:
                found.append(Asset(f"evaluator {each}", "model", False, str(each), str(error)))
                continue
            found.append(Asset(f"evaluator {each}", "model", True, str(each)))
            base = encoder or settings.encoder
            found += reader_assets(base) if base != "." else []
            if settings.stack is not None:
                found += _language_model(likelihood or settings.stack.model)
        return found

    @staticmethod
    def needs_graphs(folder: str | Path | Sequence[str | Path] = (), **_: Any) -> bool:
        """Whether one of the evaluators has a graph branch."""
        folders = [folder] if isinstance(folder, (str, Path)) else folder
        return any(read_settings(each).architecture.graph is not None for each in folders)

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Predictions, example by example."""
        if self._graphs is not None and self._branched:
            say_if_none(examples, self._graphs)
        by_evaluator = [evaluator.predict(examples, self.name, self._graphs) for evaluator in self._evaluators]
        return [prediction for row in zip(*by_evaluator, strict=True) for prediction in row]


def _language_model(name: str) -> list[Asset]:
    try:
        return reader_assets(f"likelihood:{name}")
    except ConfigError as error:
        return [Asset(f"language model {name}", "model", False, name, f"{error}; name its place as likelihood")]
