"""Cosine of the sentence embeddings of source and hypothesis: finds mismatches, hardly grades good translations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModel, AutoTokenizer

from mdialeval.assets import EMBEDDED, encoder_assets, resolve_encoder
from mdialeval.devices import choose_device
from mdialeval.errors import BackendError
from mdialeval.rank.batches import Batches, pad
from mdialeval.rank.lengths import Length, OnLong, Pair, estimate, measure
from mdialeval.records import Translation
from mdialeval.registry import Asset
from mdialeval.signature import signature_line, version


class Cosine:
    """Mean-pooled cosine in [-1, 1], higher is better.

    On MLQE-PE it hardly correlates with human judgements (.02 to .06), but it separates a translation from another
    sentence's; use it as a filter beside a trained estimator.

    Args:
        encoder: ``embedded``, a folder, or a name on the hub.
        prefix: put before every text, as e5 was trained with; None takes e5's for the embedded encoder.
        on_long: what happens to texts longer than the encoder's window; see ``lengths.estimate``.
        batch_size: texts a batch at most.
        device: ``auto``, ``cpu``, ``cuda`` ...
    """

    higher_is_better = True

    def __init__(
        self,
        encoder: str = EMBEDDED,
        *,
        prefix: str | None = None,
        on_long: OnLong = "truncate",
        batch_size: int = 64,
        device: str = "auto",
    ) -> None:
        name = resolve_encoder(encoder)
        try:
            tokenizer: Any = AutoTokenizer.from_pretrained(name)  # type: ignore[no-untyped-call]
            model: Any = AutoModel.from_pretrained(name)
        except OSError as error:
            raise BackendError(
                "cosine", f"encoder {encoder!r}: {error}", hint=f"huggingface-cli download {encoder}"
            ) from error
        prefix = ("query: " if encoder == EMBEDDED else "") if prefix is None else prefix
        self._pairs = _CosinePairs(tokenizer, model.to(choose_device(device)).eval(), prefix, batch_size)
        self._on_long = on_long
        parts = {"estimator": "cosine", "encoder": encoder, "prefix": prefix.strip(), "on_long": on_long}
        self.identity = signature_line(parts | {name: version(name) for name in ("torch", "transformers")})

    @staticmethod
    def assets(encoder: str = EMBEDDED, **_: object) -> list[Asset]:
        """The encoder."""
        return encoder_assets(encoder)

    def estimate(self, pairs: Sequence[Translation]) -> list[float]:
        """One cosine a pair; NaN for empty texts."""
        return estimate(self._pairs, pairs, self._on_long)

    def lengths(self, pairs: Sequence[Translation]) -> list[Length]:
        """Tokens of the longer side, against the window."""
        return measure(self._pairs, pairs)


class _CosinePairs:
    """See ``lengths.PairModel``."""

    def __init__(self, tokenizer: Any, model: Any, prefix: str, batch_size: int) -> None:
        self._tokenizer, self._model, self._prefix = tokenizer, model, prefix
        self._batches = Batches(batch_size)
        self.limit = min(int(model.config.max_position_embeddings), int(tokenizer.model_max_length))

    def count(self, pairs: Sequence[Pair]) -> list[int]:
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        size = {text: len(ids) for text, ids in zip(texts, self._ids(texts, cut=False), strict=True)}
        return [max(size[source], size[hypothesis]) for source, hypothesis in pairs]

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        if not pairs:
            return []
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        place = {text: row for row, text in enumerate(texts)}
        tokens = self._ids(texts, cut=True)

        def run(rows: Sequence[int]) -> Tensor:
            ids, mask = pad([tokens[row] for row in rows], self._tokenizer.pad_token_id, self._model.device)
            hidden = self._model(input_ids=ids, attention_mask=mask).last_hidden_state  # (B, T, D)
            pooled: Tensor = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
            return pooled

        with torch.inference_mode():
            vectors = torch.nn.functional.normalize(self._batches.gather(run, [len(ids) for ids in tokens]), dim=1)
            source = vectors[[place[text] for text, _ in pairs]]
            hypothesis = vectors[[place[text] for _, text in pairs]]
            scores: list[float] = (source * hypothesis).sum(1).float().tolist()
        return scores

    def _ids(self, texts: Sequence[str], *, cut: bool) -> list[list[int]]:
        if not texts:
            return []
        options = {"truncation": True, "max_length": self.limit} if cut else {"truncation": False, "verbose": False}
        found: list[list[int]] = self._tokenizer([self._prefix + text for text in texts], **options)["input_ids"]
        return found
