"""A trained evaluator, ready to score: ``Evaluator.from_pretrained(folder).score(context, response, language)``."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch

from mdialeval.devices import choose_device
from mdialeval.errors import BackendError
from mdialeval.graphs.turns import graphs_of
from mdialeval.languages import canonical
from mdialeval.model.batches import batches_by_length, bundles, collate
from mdialeval.model.graph_input import GraphRow, collate_graphs, encode_graphs
from mdialeval.model.markup import Row, encode_pairs
from mdialeval.model.network import EvaluatorNetwork
from mdialeval.model.precision import Precision, choose_dtype
from mdialeval.model.saved import Settings, load_folder
from mdialeval.records import Example, Graph, Prediction, PredictionStatus, Scalar, Turn
from mdialeval.signature import fingerprint, signature_line, versions

PACK = 12  # responses a sequence: attention grows with the square of the length, the rest of the work does not


class Evaluator:
    """Scores responses in context; the same text gives the same score whatever else is scored with it.

    Args:
        network: in evaluation mode.
        tokenizer: of its encoder.
        settings: dimension, markup and origin.
        device: ``auto``, ``cpu``, ``cuda`` ...
        precision: of the matrix products.
        batch_size: pairs scored together; changes the speed only.
    """

    def __init__(
        self,
        network: EvaluatorNetwork,
        tokenizer: Any,
        settings: Settings,
        device: str = "auto",
        precision: Precision = "auto",
        batch_size: int = 32,
    ) -> None:
        self.device = choose_device(device)
        self.dtype = choose_dtype(precision, self.device, network.encoder.base.config.model_type)
        self.network = network.to(self.device).eval()
        self.tokenizer, self.settings, self.batch_size = tokenizer, settings, batch_size

    @classmethod
    def from_pretrained(
        cls,
        folder: str | Path,
        encoder: str | None = None,
        device: str = "auto",
        precision: Precision = "auto",
        batch_size: int = 32,
    ) -> Self:
        """The evaluator in a folder that ``train`` wrote; see ``saved.load_folder`` for what may go wrong."""
        return cls(*load_folder(folder, encoder), device=device, precision=precision, batch_size=batch_size)

    @property
    def dimension(self) -> str:
        """What it measures."""
        return self.settings.dimension

    @functools.cached_property
    def signature(self) -> str:
        """How its numbers are made, in one line; ``weights`` hashes what training made."""
        sums = {k: _digest(v) for k, v in self.network.state_dict().items() if not k.startswith("encoder.base.emb")}
        markup, branch = self.settings.markup, self.settings.architecture.graph
        return signature_line(
            {
                "scorer": "evaluator",
                "dimension": self.dimension,
                "encoder": f"{Path(self.settings.encoder).name}@{self.settings.encoder_hash}",
                "weights": fingerprint(sums),
                "dtype": str(self.dtype).removeprefix("torch."),
                **({"graph": f"{branch.join}-{'only' if branch.only else branch.fusion}"} if branch else {}),
                "max_tokens": markup.max_tokens,
                "markup": fingerprint([markup.max_turns, markup.speakers, self.settings.architecture.attention], 6),
                **versions("torch", "transformers"),
            }
        )

    def score(self, context: Sequence[Turn | str], response: Turn | str, language: str = "en") -> float:
        """The score of one response; higher is better, in [0, 1] for a classifier.

        Raises:
            BackendError: there is nothing to score (an empty response).
        """
        turns = [Turn(turn) if isinstance(turn, str) else turn for turn in context]
        last = Turn(response) if isinstance(response, str) else response
        prediction = self.predict([Example("one", canonical(language), tuple(turns), last)])[0]
        if prediction.score is None:
            raise BackendError(f"evaluator {self.dimension}", f"no score: the response is {prediction.status}")
        return prediction.score

    def predict(
        self, examples: Sequence[Example], scorer: str = "evaluator", graphs: Mapping[str, Graph] | None = None
    ) -> list[Prediction]:
        """Predictions in the order of the examples; each distinct input is scored once.

        Args:
            examples: what to score.
            scorer: the predictions' scorer.
            graphs: turn id -> its semantic graph, for an evaluator with a graph branch; an example without any is
                scored as one without a graph, and its ``detail`` says how many of its turns had one.

        Raises:
            BackendError: a score is not a finite number; the message names the example.
        """
        usable = [i for i, e in enumerate(examples) if _status(e) == "ok"]
        coded = encode_pairs(self.tokenizer, [examples[i] for i in usable], self.settings.markup)
        rows = dict(zip(usable, coded, strict=True))
        drawn = self._graph_rows([examples[i] for i in usable], graphs)
        graph_rows = dict(zip(usable, drawn, strict=True)) if drawn else dict.fromkeys(usable)
        places = {i: (row.context, row.response, graph_rows[i]) for i, row in rows.items()}
        distinct = list(dict.fromkeys(places.values()))
        texts = [Row(context, response, 0, 0, False) for context, response, _ in distinct]
        values = dict(zip(distinct, self.score_rows(texts, [g for *_, g in distinct if g] or None), strict=True))
        predictions = []
        for i, example in enumerate(examples):
            row = rows.get(i)
            if row is None:
                head = (example.id, example.language, scorer, self.dimension)
                predictions.append(Prediction(*head, None, _status(example)))
                continue
            value = values[places[i]]
            if not math.isfinite(value):
                raise BackendError(
                    f"evaluator {self.dimension}", f"the score of example {example.id!r} is {value}", hint="use fp32"
                )
            predictions.append(self._prediction(example, row, graph_rows[i], value, scorer))
        return predictions

    def _graph_rows(self, examples: Sequence[Example], graphs: Mapping[str, Graph] | None) -> list[GraphRow] | None:
        """The graphs of examples; None where no graph branch looks at them."""
        branch = self.settings.architecture.graph
        if branch is None:
            return None
        return encode_graphs(self.tokenizer, [graphs_of(example, graphs or {}) for example in examples], branch.join)

    def _prediction(self, example: Example, row: Row, graph: GraphRow | None, value: float, scorer: str) -> Prediction:
        detail: dict[str, Scalar] = {"n_tokens": row.n_tokens, "n_turns_dropped": row.n_turns_dropped}
        if graph is not None:
            detail |= {"n_graphs": graph.n_graphs, "n_turns": graph.n_turns, "graph_cut": graph.cut}
        status: PredictionStatus = "truncated" if row.truncated else "ok"
        return Prediction(example.id, example.language, scorer, self.dimension, value, status, detail)

    @torch.inference_mode()
    def score_rows(self, rows: Sequence[Row], graphs: Sequence[GraphRow] | None = None) -> list[float]:
        """Scores of encoded pairs, same order.

        Args:
            rows: the texts.
            graphs: of each row, where the evaluator has a graph branch.
        """
        scores = torch.zeros(len(rows), dtype=torch.float64)
        architecture = self.network.architecture
        pack = 1 if architecture.attention == "joint" else PACK
        groups = bundles(rows, range(len(rows)), pack)
        half = self.dtype != torch.float32
        for part in batches_by_length(rows, groups, self.batch_size):
            batch = collate(
                rows, part, self.tokenizer.cls_token_id, self.tokenizer.pad_token_id, architecture.attention
            ).to(self.device)
            drawn = None
            if graphs is not None:
                drawn = collate_graphs([graphs[i] for i in batch.rows.tolist()], self.tokenizer.pad_token_id)
                drawn = drawn.to(self.device)
            with torch.autocast(self.device.type, self.dtype, enabled=half):
                outputs = self.network(batch, drawn)
            scores[batch.rows.cpu()] = self.network.to_scores(outputs.float()).double().cpu()
        return scores.tolist()  # type: ignore[no-any-return]


def _status(example: Example) -> PredictionStatus:
    if example.response is None:
        return "unsupported"
    return "ok" if example.response.text.strip() else "empty"


def _digest(tensor: torch.Tensor) -> str:
    return fingerprint([float(tensor.double().sum()), float(tensor.double().abs().sum()), list(tensor.shape)])
