"""The cosine baseline: how alike context and response are to an encoder that was trained on nothing here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from mdialeval import assets as encoders
from mdialeval.devices import choose_device
from mdialeval.model.batches import batches_by_length, bundles, collate
from mdialeval.model.encoder import TextEncoder, load_base, packs, weights_hash
from mdialeval.model.markup import Markup, encode_pairs
from mdialeval.records import Example, Prediction, PredictionStatus, Scalar
from mdialeval.registry import Asset
from mdialeval.scorers.statuses import usable
from mdialeval.signature import signature_line, versions


class Cosine:
    """Cosine of the mean token vectors of context and response, encoded apart; in [-1, 1], higher is more alike.

    Args:
        encoder: ``embedded``, a folder or a hub name; one with absolute positions.
        max_tokens: limit of context and response together; the oldest turns are dropped first.
        batch_size: pairs a batch.
        device: ``auto``, ``cpu``, ``cuda`` ...
    """

    name = "cosine"
    dimensions = ("relatedness",)

    def __init__(
        self,
        encoder: str = encoders.EMBEDDED,
        max_tokens: int = 96,
        batch_size: int = 64,
        device: str = "auto",
    ) -> None:
        base, self._tokenizer = load_base(encoders.resolve_encoder(encoder))
        self._device = choose_device(device)
        self._encoder = TextEncoder(base, "separate" if packs(base) else "joint", "parts", "last")
        self._encoder.to(self._device).eval()
        self._markup, self._batch_size = Markup(max_tokens), batch_size
        self.signature = signature_line(
            {
                "scorer": "cosine",
                "encoder": f"{encoder}@{weights_hash(base)}",
                "max_tokens": max_tokens,
                **versions("torch", "transformers"),
            }
        )

    @staticmethod
    def assets(encoder: str = encoders.EMBEDDED, **_: Any) -> list[Asset]:
        """The encoder."""
        return encoders.encoder_assets(encoder)

    @torch.inference_mode()
    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """One prediction an example; without a context there is nothing to compare with (``empty``)."""
        statuses = [usable(example, needs_context=True) for example in examples]
        chosen = [i for i, status in enumerate(statuses) if status == "ok"]
        rows = encode_pairs(self._tokenizer, [examples[i] for i in chosen], self._markup)
        cosines = torch.zeros(len(rows))
        groups = bundles(rows, range(len(rows)), pack=12)
        start, pad = self._tokenizer.cls_token_id, self._tokenizer.pad_token_id
        for part in batches_by_length(rows, groups, self._batch_size):
            batch = collate(rows, part, start, pad, self._encoder.attention).to(self._device)
            context, response = self._encoder.pooled(batch)[:, :, 0].unbind(1)
            cosines[batch.rows.cpu()] = torch.nn.functional.cosine_similarity(context, response).cpu()
        found = dict(zip(chosen, zip(rows, cosines.tolist(), strict=True), strict=True))
        predictions = []
        for i, example in enumerate(examples):
            head = (example.id, example.language, self.name, self.dimensions[0])
            if i not in found:
                predictions.append(Prediction(*head, None, statuses[i]))
                continue
            row, value = found[i]
            detail: dict[str, Scalar] = {"n_tokens": row.n_tokens, "n_turns_dropped": row.n_turns_dropped}
            status: PredictionStatus = "truncated" if row.truncated else "ok"
            predictions.append(Prediction(*head, value, status, detail))
        return predictions
