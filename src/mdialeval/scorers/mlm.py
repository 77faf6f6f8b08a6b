"""Pseudo-likelihood of the response under a masked language model (Salazar et al., ACL 2020), by token.

Every token of the response is masked in turn; the score is the mean log-probability of the masked tokens, so a long
response is not worse for being long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import AutoModelForMaskedLM, AutoTokenizer

from mdialeval import assets as encoders
from mdialeval.devices import choose_device
from mdialeval.errors import BackendError, ConfigError
from mdialeval.model.encoder import weights_hash
from mdialeval.model.markup import Markup, Row, encode_pairs
from mdialeval.records import Example, Prediction, PredictionStatus, Scalar
from mdialeval.registry import Asset
from mdialeval.scorers.statuses import usable
from mdialeval.signature import signature_line, versions


class _Masked(NamedTuple):
    """One response token to predict: its row, the ids with the mask in its place, where, and what it is."""

    row: int
    ids: list[int]
    place: int
    token: int


class MaskedLM:
    """Mean log-probability of the response's tokens; at most 0, higher is better.

    Args:
        encoder: a checkpoint with a masked-language-model head, such as ``xlm-roberta-base`` or a folder (the
            embedded encoder has none).
        with_context: let the model see the context; without, it judges the sentence alone.
        max_tokens: limit of a pair; the oldest turns are dropped first.
        batch_size: masked copies a batch.
        device: ``auto``, ``cpu``, ``cuda`` ...

    Raises:
        ConfigError: the checkpoint has no masked-language-model head.
        BackendError: it cannot be loaded.
    """

    name = "mlm"
    dimensions = ("likelihood",)

    def __init__(
        self,
        encoder: str,
        with_context: bool = True,
        max_tokens: int = 128,
        batch_size: int = 64,
        device: str = "auto",
    ) -> None:
        where = encoders.resolve_encoder(encoder)
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(where)  # type: ignore[no-untyped-call]
            model, info = AutoModelForMaskedLM.from_pretrained(where, output_loading_info=True)
        except (OSError, ValueError) as error:
            raise BackendError("mlm", str(error).splitlines()[0], hint="name a local folder or a hub model") from error
        self._head: Any = getattr(model, "lm_head", None) or getattr(model, "cls", None)
        tied = ("decoder", "pooler", "position_ids")
        if self._head is None or [k for k in info["missing_keys"] if not any(t in k for t in tied)]:
            raise ConfigError(
                f"scorer 'mlm': {encoder!r} has no masked-language-model head; use one such as xlm-roberta-base"
            )
        if self._tokenizer.mask_token_id is None:
            raise ConfigError(f"scorer 'mlm': the tokenizer of {encoder!r} has no mask token")
        self._device = choose_device(device)
        self._model: Any = model.to(self._device).eval()
        self._markup, self._with_context, self._batch_size = Markup(max_tokens), with_context, batch_size
        self.signature = signature_line(
            {
                "scorer": "mlm",
                "encoder": f"{encoder}@{weights_hash(model)}",
                "context": "yes" if with_context else "no",
                "max_tokens": max_tokens,
                **versions("torch", "transformers"),
            }
        )

    @staticmethod
    def assets(encoder: str = "", **_: Any) -> list[Asset]:
        """The encoder."""
        return encoders.encoder_assets(encoder)

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """One prediction an example."""
        statuses = [usable(example) for example in examples]
        chosen = [i for i, status in enumerate(statuses) if status == "ok"]
        rows = dict(
            zip(chosen, encode_pairs(self._tokenizer, [examples[i] for i in chosen], self._markup), strict=True)
        )
        means = self._means(rows)
        predictions = []
        for i, example in enumerate(examples):
            head = (example.id, example.language, self.name, self.dimensions[0])
            if i not in rows:
                predictions.append(Prediction(*head, None, statuses[i]))
                continue
            row = rows[i]
            detail: dict[str, Scalar] = {"n_tokens": row.n_tokens, "n_turns_dropped": row.n_turns_dropped}
            status: PredictionStatus = "truncated" if row.truncated else "ok"
            predictions.append(Prediction(*head, means[i], status, detail))
        return predictions

    @torch.inference_mode()
    def _means(self, rows: dict[int, Row]) -> dict[int, float]:
        """Row -> mean log-probability."""
        copies = sorted(self._copies(rows), key=lambda c: len(c.ids))
        found: dict[int, list[tuple[int, float]]] = {}
        for start in range(0, len(copies), self._batch_size):
            part = copies[start : start + self._batch_size]
            for copy, value in zip(part, self._log_probabilities(part).tolist(), strict=True):
                found.setdefault(copy.row, []).append((copy.place, value))
        return {row: sum(v for _, v in sorted(values)) / len(values) for row, values in found.items()}

    def _copies(self, rows: dict[int, Row]) -> Iterator[_Masked]:
        for i, row in rows.items():
            before = [self._tokenizer.cls_token_id, *(row.context if self._with_context else ())]
            ids = [*before, *row.response]
            for place in range(len(before), len(ids) - 1):  # the closing separator is no word
                masked = [*ids[:place], self._tokenizer.mask_token_id, *ids[place + 1 :]]
                yield _Masked(i, masked, place, ids[place])

    def _log_probabilities(self, part: Sequence[_Masked]) -> Tensor:
        """Log-probability of each masked token, (len(part),); the head sees the masked places only."""
        longest = max(len(copy.ids) for copy in part)
        pad = self._tokenizer.pad_token_id
        ids = torch.tensor([copy.ids + [pad] * (longest - len(copy.ids)) for copy in part], device=self._device)
        mask = torch.tensor([[1] * len(c.ids) + [0] * (longest - len(c.ids)) for c in part], device=self._device)
        states = self._model.base_model(input_ids=ids, attention_mask=mask).last_hidden_state
        places = torch.tensor([copy.place for copy in part], device=self._device)
        logits = self._head(states[torch.arange(len(part), device=self._device), places]).float()
        tokens = torch.tensor([copy.token for copy in part], device=self._device)
        found: Tensor = logits.log_softmax(1).gather(1, tokens.unsqueeze(1)).squeeze(1)
        return found
