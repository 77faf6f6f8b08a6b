"""The embedded estimator: what ranks translations where no COMET checkpoint can be had."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import BertModel, PreTrainedTokenizerFast

from mdialeval.assets import EMBEDDED, embedded_encoder, encoder_assets
from mdialeval.devices import choose_device
from mdialeval.rank.batches import Batches, pad
from mdialeval.rank.embedded.features import ALIGNED_LAYERS, alignment, is_content, pool, text_features
from mdialeval.rank.embedded.head import HEAD, load_head
from mdialeval.rank.lengths import Length, OnLong, Pair, estimate, measure
from mdialeval.records import Translation
from mdialeval.registry import Asset
from mdialeval.signature import signature_line, version

_BLOCK = 384  # pairs whose token states are held at once: about 100 MB
_ALIGNED = 32  # pairs aligned at once


class Embedded:
    """A referenceless estimator over the frozen embedded encoder; higher is better.

    The score is in standard deviations of human judgements inside a language pair, 0 for an average machine
    translation of news-like text.  Like every such estimator it ranks inside one language; see the model card
    (``head.read_card``) for what it reaches.

    Args:
        on_long: what happens to texts longer than the encoder's window; see ``lengths.estimate``.
        batch_size: texts a batch at most.
        device: ``auto``, ``cpu``, ``cuda`` ...
    """

    higher_is_better = True

    def __init__(self, *, on_long: OnLong = "truncate", batch_size: int = 64, device: str = "auto") -> None:
        self._batch_size, self._device, self._on_long = batch_size, choose_device(device), on_long
        weights = (resources.files("mdialeval.rank.embedded") / HEAD).read_bytes()
        parts = {"estimator": EMBEDDED, "head": hashlib.sha256(weights).hexdigest()[:12], "on_long": on_long}
        self.identity = signature_line(parts | {name: version(name) for name in ("mdialeval", "torch", "transformers")})

    @functools.cached_property
    def _pairs(self) -> EmbeddedPairs:
        """Loaded at the first estimate: a run whose scores are all there asks for the identity alone."""
        head, centre = load_head()
        encoder = FrozenEncoder(embedded_encoder(), self._batch_size, self._device)
        return EmbeddedPairs(encoder, head.to(self._device), centre.to(self._device))

    @staticmethod
    def assets(**_: object) -> list[Asset]:
        """The encoder; the head comes with the package."""
        return encoder_assets(EMBEDDED)

    def estimate(self, pairs: Sequence[Translation]) -> list[float]:
        """One score a pair; NaN for empty texts and for skipped long ones."""
        return estimate(self._pairs, pairs, self._on_long)

    def lengths(self, pairs: Sequence[Translation]) -> list[Length]:
        """Tokens of the longer side, against the window."""
        return measure(self._pairs, pairs)


class Described(NamedTuple):
    """Pairs as the head sees them: pooled states (B, N, D) of source and hypothesis, features (B, F)."""

    source: Tensor
    hypothesis: Tensor
    features: Tensor


class _Text(NamedTuple):
    pooled: Tensor  # (N, D) all layers
    tokens: Tensor  # (L, T, D) content tokens of the aligned layers


class FrozenEncoder:
    """The embedded encoder, and descriptions of pairs by it.

    Args:
        folder: its checkpoint.
        batch_size: texts a batch at most.
        device: where it runs.
    """

    def __init__(self, folder: Path, batch_size: int, device: torch.device) -> None:
        self._tokenizer: Any = PreTrainedTokenizerFast.from_pretrained(folder)
        model: Any = BertModel.from_pretrained(folder)
        self._model, self.device = model.to(device).eval(), device
        self._batches = Batches(batch_size)
        vocabulary = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
        self._unigram: NDArray[np.float64] = np.array([score for _, score in vocabulary])
        self.limit = int(model.config.max_position_embeddings)

    def ids(self, texts: Sequence[str], *, cut: bool) -> list[list[int]]:
        """Token ids with ``<s>`` and ``</s>``."""
        if not texts:
            return []
        options = {"truncation": True, "max_length": self.limit} if cut else {"truncation": False, "verbose": False}
        found: list[list[int]] = self._tokenizer(list(texts), **options)["input_ids"]
        return found

    def centre(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(L, D) the mean vector of the content tokens of some texts in every aligned layer."""
        ids = dict(zip(texts, self.ids(texts, cut=True), strict=True))
        with torch.inference_mode():
            tokens = torch.cat([text.tokens for text in self._encode(ids).values()], dim=1)  # (L, T, D)
        mean: NDArray[np.float32] = tokens.mean(1).cpu().numpy()
        return mean

    def describe(self, pairs: Sequence[Pair], centre: Tensor) -> Iterator[Described]:
        """Descriptions of the pairs in order, some hundred at a time; neighbours that share a text share its encoding.

        Args:
            pairs: texts that are not empty.
            centre: (L, D) mean vectors of the aligned layers.
        """
        for start in range(0, len(pairs), _BLOCK):
            block = pairs[start : start + _BLOCK]
            names = list(dict.fromkeys(itertools.chain.from_iterable(block)))
            ids = dict(zip(names, self.ids(names, cut=True), strict=True))
            texts = self._encode(ids)
            order = sorted(range(len(block)), key=lambda row: [texts[text].tokens.shape[1] for text in block[row]])
            parts, rows = [], []
            for at in range(0, len(order), _ALIGNED):
                part = order[at : at + _ALIGNED]
                sides = [_stack([texts[block[row][side]].tokens for row in part]) for side in (0, 1)]
                parts.append(alignment(*sides[0], *sides[1], centre).flatten(1))
                rows += part
            aligned = torch.cat(parts)[torch.tensor(rows, device=self.device).argsort()]
            counts = [text_features(s, h, ids[s][1:-1], ids[h][1:-1], self._unigram) for s, h in block]
            yield Described(
                torch.stack([texts[source].pooled for source, _ in block]),
                torch.stack([texts[hypothesis].pooled for _, hypothesis in block]),
                torch.cat([aligned, torch.tensor(counts, dtype=torch.float32, device=self.device)], dim=1),
            )

    def _encode(self, ids: dict[str, list[int]]) -> dict[str, _Text]:
        names, sequences = list(ids), list(ids.values())
        found: dict[str, _Text] = {}

        def run(rows: Sequence[int]) -> Tensor:
            tokens, mask = pad([sequences[row] for row in rows], self._tokenizer.pad_token_id, self.device)
            states = self._model(input_ids=tokens, attention_mask=mask, output_hidden_states=True).hidden_states
            pooled = torch.stack([pool(layer[:, None], mask)[:, 0] for layer in states], dim=1)  # (B, N, D)
            kept, content = torch.stack([states[layer] for layer in ALIGNED_LAYERS], dim=1), is_content(tokens)
            for place, row in enumerate(rows):
                found[names[row]] = _Text(pooled[place], kept[place, :, content[place]])
            return torch.zeros(len(rows), 1)

        self._batches.gather(run, [len(sequence) for sequence in sequences])
        return found


class EmbeddedPairs:
    """See ``lengths.PairModel``."""

    def __init__(self, encoder: FrozenEncoder, head: torch.nn.Module, centre: Tensor) -> None:
        self._encoder, self._head, self._centre = encoder, head, centre
        self.limit = encoder.limit

    def count(self, pairs: Sequence[Pair]) -> list[int]:
        """Tokens of the longer side."""
        texts = list(dict.fromkeys(itertools.chain.from_iterable(pairs)))
        size = {text: len(ids) for text, ids in zip(texts, self._encoder.ids(texts, cut=False), strict=True)}
        return [max(size[source], size[hypothesis]) for source, hypothesis in pairs]

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """Scores in the order given; equal pairs are computed once."""
        order = sorted(dict.fromkeys(pairs))  # by source: the translations of a source follow one another
        scores: list[float] = []
        with torch.inference_mode():
            for part in self._encoder.describe(order, self._centre):
                scores += self._head(*part).tolist()
        found = dict(zip(order, scores, strict=True))
        return [found[pair] for pair in pairs]


def _stack(tokens: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """(B, L, T, D) padded token states and their mask (B, T); at least one place, also where a text has no content."""
    longest = max(1, *(text.shape[1] for text in tokens))
    first = tokens[0]
    states = first.new_zeros(len(tokens), first.shape[0], longest, first.shape[2])
    mask = torch.zeros(len(tokens), longest, dtype=torch.bool, device=first.device)
    for row, text in enumerate(tokens):
        states[row, :, : text.shape[1]] = text
        mask[row, : text.shape[1]] = True
    return states, mask
