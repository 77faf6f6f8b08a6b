"""Scoring a COMET model fast: distinct texts once, batches by length, no trainer per call.

A referenceless regression model sees source and hypothesis separately, so a source is encoded once for all its target
languages.  A unified model sees both in one sequence, so distinct pairs are scored once.  In float32 the scores are
those of the model's own ``predict`` to about 1e-6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from comet.models import CometModel, ReferencelessRegression, UnifiedMetric
from torch import Tensor

from mdialeval.rank.batches import Batches, pad
from mdialeval.rank.lengths import Pair

_BLOCK = 8192  # pairs scored before their sentence vectors are let go: bounds the memory
_ROWS = 1024  # rows of the estimator network at a time


class CometPairs:
    """A referenceless COMET model as a ``PairModel``.

    Args:
        model: in eval mode, on its device.
        batch_size: rows a batch at most.
    """

    def __init__(self, model: CometModel, batch_size: int = 64) -> None:
        self.model = model
        self.batches = Batches(batch_size)
        self._separate = isinstance(model, ReferencelessRegression)
        # A unified model shares the window between both texts; separate texts leave two of the positions unused.
        self.limit = int(model.encoder.max_positions) - (2 if self._separate else 0)

    def count(self, pairs: Sequence[Pair]) -> list[int]:
        """Tokens of the longer side, or of both together where the model joins them."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        tokens = self._ids(texts, cut=False)
        size = {text: len(ids) for text, ids in zip(texts, tokens, strict=True)}
        if self._separate:
            return [max(size[source], size[hypothesis]) for source, hypothesis in pairs]
        extra = int(self.model.encoder.size_separator) - 1
        return [size[source] + size[hypothesis] - 1 + extra for source, hypothesis in pairs]

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """Scores in the order given; equal pairs are computed once."""
        order = sorted(dict.fromkeys(pairs))  # by source: the translations of a source follow one another
        scores: dict[Pair, float] = {}
        with torch.inference_mode():
            for start in range(0, len(order), _BLOCK):
                block = order[start : start + _BLOCK]
                values = self._regression(block) if self._separate else self._joint(block)
                scores.update(zip(block, values, strict=True))
        return [scores[pair] for pair in pairs]

    def _ids(self, texts: Sequence[str], *, cut: bool) -> list[list[int]]:
        if not texts:
            return []
        options: dict[str, Any] = {"truncation": True, "max_length": int(self.model.encoder.max_positions) - 2}
        if not cut:
            options = {"truncation": False, "verbose": False}
        found: list[list[int]] = self.model.encoder.tokenizer(list(texts), **options)["input_ids"]
        return found

    def _regression(self, pairs: Sequence[Pair]) -> list[float]:
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        place = {text: row for row, text in enumerate(texts)}
        vectors = self._vectors(texts)  # (texts, D)
        found = []
        for start in range(0, len(pairs), _ROWS):
            part = pairs[start : start + _ROWS]
            source = vectors[[place[text] for text, _ in part]]
            hypothesis = vectors[[place[text] for _, text in part]]
            # The order in which COMET's estimator was trained to see them (Rei et al. 2020).
            features = torch.cat(
                [hypothesis, source, hypothesis * source, (hypothesis - source).abs()], dim=1
            )  # (B, 4 D)
            found.append(self.model.estimator(features).view(-1))
        scores: list[float] = torch.cat(found).float().tolist()
        return scores

    def _vectors(self, texts: Sequence[str]) -> Tensor:
        """(len(texts), D) the model's own sentence embeddings."""
        tokens = self._ids(texts, cut=True)
        padding = self.model.encoder.tokenizer.pad_token_id

        def run(rows: Sequence[int]) -> Tensor:
            ids, mask = pad([tokens[row] for row in rows], padding, self.model.device)
            vectors: Tensor = self.model.get_sentence_embedding(ids, mask)
            return vectors

        return self.batches.gather(run, [len(ids) for ids in tokens])

    def _joint(self, pairs: Sequence[Pair]) -> list[float]:
        def run(rows: Sequence[int]) -> Tensor:
            sample = [{"src": pairs[row][0], "mt": pairs[row][1]} for row in rows]
            inputs = tuple(self._moved(part) for part in self.model.prepare_sample(sample, stage="predict"))
            if type(self.model) is UnifiedMetric and len(inputs) == 1:
                scores: Tensor = self.model(**inputs[0]).score  # predict_step would also decode error spans
            else:
                scores = torch.as_tensor(self.model.predict_step(inputs)["scores"])
            return scores.view(-1, 1)

        lengths = [min(tokens, self.limit) for tokens in self.count(pairs)]
        found: list[float] = self.batches.gather(run, lengths)[:, 0].float().tolist()
        return found

    def _moved(self, inputs: Any) -> dict[str, Any]:
        device = self.model.device
        return {name: value.to(device) if isinstance(value, Tensor) else value for name, value in inputs.items()}
