"""Evaluators as an ONNX graph, for scoring on CPUs through onnxruntime.

    evaluator.json               as in every evaluator folder
    model.onnx, model.onnx.data  the graph, from token ids to scores, and its weights in float32
    tokenizer files              as Hugging Face writes them
    README.md                    the model card, with the largest difference from the original's scores

The graph takes the packed pairs of ``batches`` and gives one score a pair.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import logging
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoTokenizer

from mdialeval.errors import BackendError, ConfigError, DataError, MissingExtraError
from mdialeval.files import write_json
from mdialeval.model.adapters import merge_lora
from mdialeval.model.batches import Batch, batches_by_length, bundles, collate
from mdialeval.model.equality import Equality, compare, write_card
from mdialeval.model.evaluator import PACK, Evaluator
from mdialeval.model.graph_input import GraphRow
from mdialeval.model.markup import Row
from mdialeval.model.network import EvaluatorNetwork
from mdialeval.model.predictions import predict
from mdialeval.model.saved import FORMAT, ONNX, SETTINGS, read_settings
from mdialeval.model.stack import refuse_stack
from mdialeval.records import Example, Prediction
from mdialeval.registry import EXTRA_OF
from mdialeval.signature import file_hash, signature_line, versions

INPUTS = ("input_ids", "positions", "owners", "sequence", "slot")
# Two sequences of three pairs: what the graph is traced with, of no size that the exporter would take for a constant.
_TRACED = [Row((7, 8, 9), (7, 8), 0, 0, False), Row((7, 8, 9), (9,), 0, 0, False), Row((8,), (9, 7, 7), 0, 0, False)]


class _Graph(nn.Module):
    """From the tensors of a batch to scores (P,)."""

    def __init__(self, network: EvaluatorNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, input_ids: Tensor, positions: Tensor, owners: Tensor, sequence: Tensor, slot: Tensor) -> Tensor:
        batch = Batch(input_ids, positions, owners, sequence, slot, slot)
        slots = 1 + _pack(self.network.architecture.attention)
        return self.network.to_scores(self.network(self.network.text_encoder.pooled(batch, slots)))


def export_onnx(folder: str | Path, target: str | Path, examples: Sequence[Example]) -> Equality:
    """Write a saved evaluator as an ONNX graph and compare its scores with the original's in float32.

    Args:
        folder: written by ``train``.
        target: where the graph goes; ``evaluator.json`` comes last, once the scores are equal.
        examples: what both score.

    Raises:
        MissingExtraError: onnx, onnxscript or onnxruntime is not installed.
        ConfigError: the evaluator reads more than text (graphs, a language model) or switches adapters by language.
        BackendError: the network cannot be expressed, or a score differs by more than ``TOLERANCE``.
        DataError: there is nothing to compare.
    """
    for package in ("onnx", "onnxscript", "onnxruntime"):
        _library(package)
    folder, target = Path(folder), Path(target)
    settings = read_settings(folder)
    architecture = settings.architecture
    refuse_stack(settings.stack, str(folder))
    if architecture.graph is not None:
        raise ConfigError(f"{folder}: an evaluator with a graph branch cannot go to ONNX, which would read text alone")
    if architecture.tuning is not None and architecture.tuning.kind != "lora":
        raise ConfigError(f"{folder}: an evaluator with {architecture.tuning.label} adapters cannot go to ONNX")
    original = Evaluator.from_pretrained(folder, device="cpu", precision="fp32")
    encoder = original.network.text_encoder
    expected = original.predict(examples)
    target.mkdir(parents=True, exist_ok=True)
    (target / SETTINGS).unlink(missing_ok=True)
    if architecture.tuning is not None:
        merge_lora(encoder.base)
    _write_graph(original, target / ONNX)
    original.tokenizer.save_pretrained(target)
    values = dataclasses.asdict(settings)
    values["architecture"]["tuning"] = None  # merged
    exported = OnnxEvaluator(target, settings=settings)
    equality = compare("onnx", expected, exported.predict(examples))
    write_card(folder, target, _about(equality))
    write_json(target / SETTINGS, {"format": FORMAT, **values})
    return equality


class OnnxEvaluator:
    """Scores like ``Evaluator``, through onnxruntime on the CPU.

    Args:
        folder: written by ``export_onnx``.
        batch_size: pairs scored together; changes the speed only.
        threads: of onnxruntime; 0 = as many as torch uses.
        settings: where the folder does not hold them yet.

    Raises:
        DataError: the folder holds no exported evaluator.
        MissingExtraError: onnxruntime is not installed.
    """

    def __init__(self, folder: str | Path, batch_size: int = 32, threads: int = 0, settings: Any = None) -> None:
        runtime = _library("onnxruntime")
        self.folder, self.batch_size = Path(folder), batch_size
        self.settings = settings or read_settings(folder)
        if not (self.folder / ONNX).exists():
            raise DataError(f"no {ONNX} here; `mdialeval export EVALUATOR --to onnx` makes one", folder)
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads or torch.get_num_threads()
        options.log_severity_level = 3
        self._session = runtime.InferenceSession(str(self.folder / ONNX), options, providers=["CPUExecutionProvider"])
        self._taken = {given.name for given in self._session.get_inputs()}  # no positions where nobody looks at them

    @property
    def dimension(self) -> str:
        """What it measures."""
        return self.settings.dimension  # type: ignore[no-any-return]

    @functools.cached_property
    def signature(self) -> str:
        """How its numbers are made, in one line."""
        markup = self.settings.markup
        return signature_line(
            {
                "scorer": "onnx",
                "dimension": self.dimension,
                "encoder": f"{Path(self.settings.encoder).name}@{self.settings.encoder_hash}",
                "weights": file_hash(self.folder / f"{ONNX}.data"),
                "dtype": "float32",
                "max_tokens": markup.max_tokens,
                **versions("onnxruntime"),
            }
        )

    def predict(self, examples: Sequence[Example], scorer: str = "onnx") -> list[Prediction]:
        """Predictions in the order of the examples; each distinct input is scored once.

        Raises:
            BackendError: a score is not a finite number; the message names the example.
        """
        return predict(examples, scorer, self.settings, self.tokenizer, self.score_rows)

    def score_rows(self, rows: Sequence[Row], graphs: Sequence[GraphRow] | None = None) -> list[float]:
        """Scores of encoded pairs, same order; there are never graphs."""
        scores = [0.0] * len(rows)
        attention = self.settings.architecture.attention
        groups = bundles(rows, range(len(rows)), _pack(attention))
        for part in batches_by_length(rows, groups, self.batch_size):
            batch = collate(rows, part, self.tokenizer.cls_token_id, self.tokenizer.pad_token_id, attention)
            (found,) = self._session.run(None, {k: getattr(batch, k).numpy() for k in INPUTS if k in self._taken})
            for place, value in zip(batch.rows.tolist(), found.tolist(), strict=True):
                scores[place] = value
        return scores


def _pack(attention: str) -> int:
    return 1 if attention == "joint" else PACK


def _write_graph(evaluator: Evaluator, path: Path) -> None:
    attention = evaluator.settings.architecture.attention
    groups = [[0], [1], [2]] if attention == "joint" else [[0, 1], [2]]
    batch = collate(_TRACED, groups, evaluator.tokenizer.cls_token_id, evaluator.tokenizer.pad_token_id, attention)
    free = torch.export.Dim.DYNAMIC
    shapes = [{0: free, 1: free}] * 3 + [{0: free}] * 2
    try:
        with _quiet(), torch.no_grad():
            torch.onnx.export(
                _Graph(evaluator.network).eval(),
                tuple(batch[:5]),
                path,
                input_names=list(INPUTS),
                output_names=["score"],
                dynamic_shapes=shapes,
                dynamo=True,
                external_data=True,
                verbose=False,
            )
    except torch.onnx.errors.OnnxExporterError as error:
        raise BackendError(
            "onnx",
            f"the encoder {evaluator.settings.encoder} cannot be exported: {str(error).splitlines()[0]}",
            hint="export to huggingface instead",
        ) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's notes on other packages and its own deprecations."""
    noisy = logging.getLogger("torch.onnx")
    before = noisy.level
    noisy.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        noisy.setLevel(before)


def _about(equality: Equality) -> str:
    return (
        f"\n## ONNX\n\n`{ONNX}` holds the whole evaluator in float32. {equality.sentence} In mdialeval it is the "
        "scorer `onnx`:\n\n```yaml\nscore:\n  scorers:\n    - {scorer: onnx, options: {folder: THIS_FOLDER}}\n```\n"
    )


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise MissingExtraError("ONNX", name, EXTRA_OF[name]) from None
