"""A trained evaluator, ready to score: ``Evaluator.from_pretrained(folder).score(context, response, language)``."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import torch

from mdialeval.devices import choose_device
from mdialeval.errors import BackendError, ConfigError
from mdialeval.graphs.turns import graphs_of
from mdialeval.languages import canonical
from mdialeval.model.adapters import speak
from mdialeval.model.batches import batches_by_length, bundles, collate
from mdialeval.model.features import FrozenFeatures
from mdialeval.model.graph_input import GraphRow, collate_graphs, encode_graphs
from mdialeval.model.markup import Row
from mdialeval.model.memory import Bundles, Fitting
from mdialeval.model.network import EvaluatorNetwork
from mdialeval.model.precision import Precision, choose_dtype
from mdialeval.model.predictions import predict
from mdialeval.model.saved import Settings, load_folder
from mdialeval.model.stack import Reader, Stack, inputs_of
from mdialeval.records import Example, Graph, Prediction, PredictionStatus, Scalar, Turn
from mdialeval.signature import fingerprint, signature_line, versions

PACK = 12  # responses a sequence: attention grows with the square of the length, the rest of the work does not
_UNCHANGED = ("encoder.base.emb", "encoder.base.prompt_tuning")


class Evaluator:
    """Scores responses in context; the same text gives the same score whatever else is scored with it.

    Args:
        network: in evaluation mode.
        tokenizer: of its encoder.
        settings: dimension, markup and origin.
        device: ``auto``, ``cpu``, ``cuda`` ...
        precision: of the matrix products.
        batch_size: pairs scored together; changes the speed only.
        likelihood: where the language model lies that it also reads, if not where it was at training.
    """

    def __init__(
        self,
        network: EvaluatorNetwork,
        tokenizer: Any,
        settings: Settings,
        device: str = "auto",
        precision: Precision = "auto",
        batch_size: int = 32,
        likelihood: str | None = None,
    ) -> None:
        self.device = choose_device(device)
        self.dtype = choose_dtype(precision, self.device, network.encoder.base.config.model_type)
        self.network = network.to(self.device).eval()
        self.tokenizer, self.settings, self.batch_size = tokenizer, settings, batch_size
        self.likelihood = likelihood
        self._fitting = Fitting(f"evaluator {settings.dimension}")
        self.features: FrozenFeatures | None = None  # set where many evaluators share a frozen encoder
        self.figures: FrozenFeatures | None = None  # set where many share a language model's likelihoods ...
        self.readers: dict[tuple[str, bool], Reader] = {}  # ... or the language model itself

    @classmethod
    def from_pretrained(
        cls,
        folder: str | Path,
        encoder: str | None = None,
        device: str = "auto",
        precision: Precision = "auto",
        batch_size: int = 32,
        likelihood: str | None = None,
    ) -> Self:
        """The evaluator in a folder that ``train`` wrote; see ``saved.load_folder`` for what may go wrong."""
        network, tokenizer, settings = load_folder(folder, encoder)
        return cls(network, tokenizer, settings, device, precision, batch_size, likelihood)

    @property
    def dimension(self) -> str:
        """What it measures."""
        return self.settings.dimension

    @functools.cached_property
    def signature(self) -> str:
        """How its numbers are made, in one line; ``weights`` hashes what training made."""
        markup, architecture = self.settings.markup, self.settings.architecture
        unchanged = "encoder.base." if architecture.reads == "likelihood" else _UNCHANGED
        sums = {k: _digest(v) for k, v in self.network.state_dict().items() if not k.startswith(unchanged)}
        branch, tuning = architecture.graph, architecture.tuning
        return signature_line(
            {
                "scorer": "evaluator",
                "dimension": self.dimension,
                "encoder": f"{Path(self.settings.encoder).name}@{self.settings.encoder_hash}",
                "weights": fingerprint(sums),
                "dtype": str(self.dtype).removeprefix("torch."),
                **({"tuning": tuning.label} if tuning else {}),
                **({"graph": f"{branch.join}-{'only' if branch.only else branch.fusion}"} if branch else {}),
                **(stack.signature if (stack := self.settings.stack) else {}),
                "max_tokens": markup.max_tokens,
                "markup": fingerprint([markup.max_turns, markup.speakers, architecture.attention], 6),
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
            examples: what to score.  With language adapters each is read through that of its language, and its
                ``detail`` names it: the one of the training language where there is none of its own.
            scorer: the predictions' scorer.
            graphs: turn id -> its semantic graph, for an evaluator with a graph branch; an example without any is
                scored as one without a graph, and its ``detail`` says how many of its turns had one.

        Raises:
            BackendError: a score is not a finite number; the message names the example.
        """
        own = self._in_languages(examples, scorer, graphs)
        return own if self.settings.stack is None else self._weighed(self.settings.stack, examples, own)

    def _weighed(self, stack: Stack, examples: Sequence[Example], own: Sequence[Prediction]) -> list[Prediction]:
        """The evaluator's own predictions and the language model's likelihoods as one score; ``detail`` keeps both."""
        scored = {i: prediction.score for i, prediction in enumerate(own) if prediction.score is not None}
        found = list(own)
        if not scored:
            return found
        figures = self._reader(stack).figures([examples[i] for i in scored], self.settings.markup)
        inputs = inputs_of(list(scored.values()), self.settings.architecture.loss, figures)
        seen = zip(figures.truncated, figures.n_turns_dropped, strict=True)
        for i, row, score, (cut, dropped) in zip(scored, inputs, stack.scores(inputs), seen, strict=True):
            if not math.isfinite(score):
                raise BackendError(
                    f"evaluator {self.dimension}",
                    f"{stack.model!r} finds no finite probability for the example {examples[i].id!r}",
                )
            detail: dict[str, Scalar] = {
                "without_likelihood": scored[i],
                "log_likelihood": round(float(row[1]), 3),
                "likelihood_turns_dropped": dropped,
            }
            status: PredictionStatus = "truncated" if cut else own[i].status
            found[i] = replace(own[i], score=float(score), status=status, detail={**own[i].detail, **detail})
        return found

    def _reader(self, stack: Stack) -> Reader:
        """The language model, loaded once.

        Raises:
            BackendError: it is missing or another one.
        """
        model = self.likelihood or stack.model
        reader = self.readers.get((model, stack.in_context))
        if reader is None:
            try:
                reader = Reader(model, stack.in_context, str(self.device), self.figures)
            except ConfigError as error:
                raise BackendError(
                    f"evaluator {self.dimension}",
                    f"it also reads a language model: {error}",
                    hint="name the place where that lies now as the option likelihood, or put it back",
                ) from None
            self.readers[model, stack.in_context] = reader
        if reader.hash != stack.model_hash:
            raise BackendError(
                f"evaluator {self.dimension}",
                f"its likelihoods were weighed with {stack.model!r} ({stack.model_hash}), but {model} "
                f"holds another ({reader.hash})",
                hint="name the right one as the option likelihood, or train again",
            )
        return reader

    def _in_languages(
        self, examples: Sequence[Example], scorer: str, graphs: Mapping[str, Graph] | None
    ) -> list[Prediction]:
        """The network's own predictions, each language through its adapter where there are adapters."""
        tuning = self.settings.architecture.tuning
        if tuning is None or not tuning.languages:
            return self._predict(examples, scorer, graphs)
        places: dict[str, list[int]] = {}
        for i, example in enumerate(examples):
            places.setdefault(tuning.adapter_for(example.language), []).append(i)
        found: dict[int, Prediction] = {}
        for code, indices in places.items():
            speak(self.network.encoder.base, tuning, code)
            for i, row in zip(indices, self._predict([examples[i] for i in indices], scorer, graphs), strict=True):
                found[i] = replace(row, detail={**row.detail, "language_adapter": code})
        return [found[i] for i in range(len(examples))]

    def _predict(
        self, examples: Sequence[Example], scorer: str, graphs: Mapping[str, Graph] | None
    ) -> list[Prediction]:
        """``predict`` with the network as it is now."""
        return predict(
            *(examples, scorer, self.settings, self.tokenizer, self.score_rows),
            draw_graphs=lambda some: self._graph_rows(some, graphs),
        )

    def _graph_rows(self, examples: Sequence[Example], graphs: Mapping[str, Graph] | None) -> list[GraphRow] | None:
        """The graphs of examples; None where no graph branch looks at them."""
        branch = self.settings.architecture.graph
        if branch is None:
            return None
        return encode_graphs(self.tokenizer, [graphs_of(example, graphs or {}) for example in examples], branch.join)

    @torch.inference_mode()
    def score_rows(self, rows: Sequence[Row], graphs: Sequence[GraphRow] | None = None) -> list[float]:
        """Scores of encoded pairs, same order; a batch that does not fit into memory is cut.

        Args:
            rows: the texts.
            graphs: of each row, where the evaluator has a graph branch.
        """
        scores = torch.zeros(len(rows), dtype=torch.float64)
        architecture = self.network.architecture
        pack = 1 if architecture.attention == "joint" else PACK
        groups = bundles(rows, range(len(rows)), pack)
        half = self.dtype != torch.float32
        known: torch.Tensor | None = None
        if self.features is not None and self.network.reads_text:
            known = self.features.of(self.network, self.tokenizer, rows, self.settings.encoder_hash)

        def score_part(part: Bundles) -> None:
            batch = collate(
                rows, part, self.tokenizer.cls_token_id, self.tokenizer.pad_token_id, architecture.attention
            ).to(self.device)
            drawn = None
            if graphs is not None:
                drawn = collate_graphs([graphs[i] for i in batch.rows.tolist()], self.tokenizer.pad_token_id)
                drawn = drawn.to(self.device)
            with torch.autocast(self.device.type, self.dtype, enabled=half):
                inputs = batch if known is None else known[batch.rows.cpu()].to(self.device)
                outputs = self.network(inputs, drawn)
            scores[batch.rows.cpu()] = self.network.to_scores(outputs.float()).double().cpu()

        self._fitting.each(batches_by_length(rows, groups, self.batch_size), score_part)
        return scores.tolist()  # type: ignore[no-any-return]


def _digest(tensor: torch.Tensor) -> str:
    return fingerprint([float(tensor.double().sum()), float(tensor.double().abs().sum()), list(tensor.shape)])
