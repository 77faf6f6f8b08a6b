"""A causal language model in the encoder's place: H_S says how probable the model finds a response, not what it says.

The model learns nothing; the head learns from constructed pairs what such figures mean.  Its inputs are few and are
the same whatever the text is about, so that some hundred pairs are enough, and what is learned from shuffled and
dropped words holds for other faults, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mdialeval.assets import causal_name, encoder_assets, resolve_encoder
from mdialeval.errors import ConfigError
from mdialeval.llm.causal import CausalLM, causal_assets, load_causal, log_probabilities
from mdialeval.model.batches import Batch
from mdialeval.model.encoder import load_base
from mdialeval.registry import Asset

_MARK, _END = "-", "\n"  # a dialogue is written as a list, the same in every language
_FIGURES = 4
_BATCH = 32
_LEAST = -1e-6  # ln P(r) above this: the model is certain of the response, and there is nothing to explain

_Groups = dict[tuple[int, ...], list[tuple[int, tuple[int, ...]]]]  # ids before -> places and ids of responses


def reader_assets(encoder: str) -> list[Asset]:
    """What an encoder of either kind needs and whether it is on this machine; nothing is loaded."""
    model = causal_name(encoder)
    return encoder_assets(encoder) if model is None else causal_assets(model)


def load_reader(encoder: str, dropout: float | None = None) -> tuple[Any, Any]:
    """The model and tokenizer that an encoder's name in a configuration stands for; see ``load_base``.

    Raises:
        BackendError, ConfigError, MissingExtraError: they cannot be loaded.
    """
    model = causal_name(encoder)
    if model is None:
        return load_base(resolve_encoder(encoder), dropout)
    causal = load_causal(model, "cpu")
    return causal.model, _Tokenizer(causal, encoder)


class _Tokenizer:
    """What ``markup`` asks of a tokenizer, from a causal language model's: every turn opens as an item of a list."""

    pad_token_id = 0  # any: owners tell padding from text

    def __init__(self, causal: CausalLM, encoder: str) -> None:
        mark, end = causal.encode(_MARK), causal.encode(_END)
        if not mark or not end:
            raise ConfigError(f"encoder {encoder!r}: its tokenizer knows no line end or no hyphen, which divide turns")
        self.window = causal.window
        self._encode, self._mark = causal.encode, mark[-1]
        self.cls_token_id, self.sep_token_id = causal.start[0], end[-1]

    def __call__(self, texts: Sequence[str], **_: Any) -> dict[str, list[list[int]]]:
        return {"input_ids": [[self._mark, *self._encode(f" {text}")] for text in texts]}

    def save_pretrained(self, folder: Path) -> None:
        """Nothing: it is part of the model, which is named together with a hash of its weights."""


class LikelihoodEncoder(nn.Module):
    """Pairs to statistics of the response's log-probabilities: their sum, mean and lowest, and ln of their number.

    With a context there are four more: the same, but for the number, of the response in its context, and the share of
    its information that the context explains (see ``scorers.likelihood``).

    Args:
        base: a causal language model in float32.
        in_context: whether pairs have contexts.
    """

    def __init__(self, base: Any, in_context: bool) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.width = 2 * _FIGURES if in_context else _FIGURES

    def freeze(self, trainable_layers: int | None, train_embeddings: bool) -> None:
        """Nothing: it never learns."""

    def checkpoint_gradients(self) -> None:
        """Nothing: no gradient is made."""

    def forward(self, batch: Batch) -> Tensor:
        """H_S of a batch: (P, D)."""
        return self.combine(self.pooled(batch))

    def combine(self, pooled: Tensor) -> Tensor:
        """From ``pooled`` to H_S: (P, D)."""
        return pooled.flatten(1)

    def pooled(self, batch: Batch) -> Tensor:
        """The statistics: (P, 1, 1, D) in float32; a context is read once for all its responses."""
        found = torch.empty(len(batch.rows), 1, 1, self.width)
        alone, given = _responses(batch)
        for place, values in self._ln(alone):
            found[place, 0, 0, :_FIGURES] = torch.tensor(_figures(values))
        if self.width > _FIGURES:
            for place, values in self._ln(given):
                found[place, 0, 0, _FIGURES:-1] = torch.tensor(_figures(values)[:-1])
            total, given_total = found[..., 0], found[..., _FIGURES]
            found[..., -1] = torch.where(total < _LEAST, 1 - given_total / total, 0.0)
        return found.to(batch.input_ids.device)

    def _ln(self, groups: _Groups) -> Iterator[tuple[int, Tensor]]:
        """Place of a pair in the batch, and ln P of its response's tokens."""
        for before, entries in groups.items():
            with torch.autocast(self.base.device.type, enabled=False):
                values = log_probabilities(self.base, before, [ids for _, ids in entries], _BATCH)
            yield from zip((place for place, _ in entries), values, strict=True)


def _responses(batch: Batch) -> tuple[_Groups, _Groups]:
    """The responses of a batch by themselves and in their contexts, by what stands before them.

    The first token of a response, the mark of a list's item, stands before it.
    """
    alone: _Groups = {}
    given: _Groups = {}
    sequence, slot = batch.sequence.tolist(), batch.slot.tolist()
    for s, (line, owners) in enumerate(zip(batch.input_ids.tolist(), batch.owners.tolist(), strict=True)):
        start, context = line[0], [token for token, owner in zip(line, owners, strict=True) if owner == 0]
        for place in (place for place, of in enumerate(sequence) if of == s):
            block = [token for token, owner in zip(line, owners, strict=True) if owner == slot[place]]
            mark, *response = block if context else block[1:]
            alone.setdefault((start, mark), []).append((place, tuple(response)))
            given.setdefault((*(context or [start]), mark), []).append((place, tuple(response)))
    return alone, given


def _figures(values: Tensor) -> tuple[float, ...]:
    """Sum, mean and lowest of a response's log-probabilities, and ln of their number."""
    return float(values.sum()), float(values.mean()), float(values.min()), math.log(len(values))
