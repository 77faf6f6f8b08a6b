"""Evaluators exported to ONNX as one scorer: CPU scoring through onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mdialeval.errors import ConfigError, DataError
from mdialeval.model.onnx_graph import OnnxEvaluator
from mdialeval.model.saved import read_settings
from mdialeval.records import Example, Prediction
from mdialeval.registry import Asset, package_asset


class OnnxScorer:
    """Scores with one or several folders of ``mdialeval export --to onnx``, each for its own dimension.

    Args:
        folder: of ``export``, or several.
        batch_size: pairs scored together; changes the speed only.
        threads: of onnxruntime; 0 = as many as torch uses.

    Raises:
        ConfigError: no folder, or two that measure the same dimension.
        DataError: a folder holds no exported evaluator.
        MissingExtraError: onnxruntime is not installed.
    """

    name = "onnx"

    def __init__(self, folder: str | Path | Sequence[str | Path], batch_size: int = 32, threads: int = 0) -> None:
        folders = [folder] if isinstance(folder, (str, Path)) else list(folder)
        if not folders:
            raise ConfigError("scorer 'onnx': folder is empty: name at least one folder of `export --to onnx`")
        self._evaluators = [OnnxEvaluator(each, batch_size, threads) for each in folders]
        self.dimensions = tuple(evaluator.dimension for evaluator in self._evaluators)
        if len(set(self.dimensions)) < len(self.dimensions):
            raise ConfigError("scorer 'onnx': two folders measure one dimension: use one scorer entry for each")
        self.signature = " ".join(evaluator.signature for evaluator in self._evaluators)

    @staticmethod
    def assets(folder: str | Path | Sequence[str | Path] = (), **_: Any) -> list[Asset]:
        """onnxruntime and the folders."""
        found = [package_asset("onnxruntime")]
        for each in [folder] if isinstance(folder, (str, Path)) else folder:
            try:
                read_settings(each)
            except DataError as error:
                found.append(Asset(f"evaluator {each}", "model", False, str(each), str(error)))
                continue
            found.append(Asset(f"evaluator {each}", "model", True, str(each)))
        return found

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Predictions, example by example."""
        by_evaluator = [evaluator.predict(examples, self.name) for evaluator in self._evaluators]
        return [prediction for row in zip(*by_evaluator, strict=True) for prediction in row]
