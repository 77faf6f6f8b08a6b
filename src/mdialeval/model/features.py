"""What a frozen encoder makes of texts, computed once for many evaluators and kept in a folder.

Evaluators that share a frozen encoder and its markup differ in the head and the graph branch alone, so that the costly
part of training and scoring them is the same.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors.torch import load_file, save
from torch import Tensor

from mdialeval.files import replace_atomically
from mdialeval.model.batches import batches_by_length, bundles, collate
from mdialeval.model.encoder import setup_hash
from mdialeval.model.markup import Row
from mdialeval.model.network import EvaluatorNetwork
from mdialeval.signature import fingerprint

log = logging.getLogger(__name__)

_CHUNK = 128  # rows a file: what a killed run loses at most
_PACK = 8
_BATCH = 64


class FrozenFeatures:
    """Features of rows, (N, parts, L, W): from memory, from the folder's files, or from the encoder.

    Only for encoders of which no weight learns: the key knows the weights by the caller's hash.

    Args:
        folder: where the features are kept, about 10 KB a row of an encoder of words; None = in memory alone, those of
            the last call.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.encoded = 0  # rows that the encoder saw
        self._known: dict[tuple[str, bytes], Tensor] = {}
        self._read: set[str] = set()

    def of(
        self,
        network: EvaluatorNetwork,
        tokenizer: Any,
        rows: Sequence[Row],
        weights: str,
        on_rows: Callable[[int], None] | None = None,
    ) -> Tensor:
        """The features of some rows, in order, on the CPU in float32.

        Args:
            network: whose encoder is asked for what is not known.
            tokenizer: of the encoder.
            rows: token ids.
            weights: the hash of the encoder's weights.
            on_rows: called with the number of rows encoded so far, after each file.
        """
        shape = network.architecture
        name = fingerprint(
            [weights, setup_hash(network.encoder.base, tokenizer), shape.attention, shape.pooling, shape.layers]
        )
        if self.folder is None:
            self._known.clear()
        else:
            self._load(name, self.folder)
        keys = [(name, _key(row)) for row in rows]
        missing = list({key: row for key, row in zip(keys, rows, strict=True) if key not in self._known}.items())
        started = time.monotonic()
        for start in range(0, len(missing), _CHUNK):
            if start:
                speed = start / (time.monotonic() - started)
                log.info("%d of %d rows encoded, %.1f rows/s", start, len(missing), speed)
            part = missing[start : start + _CHUNK]
            vectors = _encode(network, tokenizer, [row for _, row in part])
            self.encoded += len(part)
            if self.folder is not None:
                _write(self.folder, name, [key for (_, key), _ in part], vectors)
            self._known |= {key: vector for (key, _), vector in zip(part, vectors, strict=True)}
            if on_rows is not None:
                on_rows(start + len(part))
        return torch.stack([self._known[key] for key in keys])

    def _load(self, name: str, folder: Path) -> None:
        if name in self._read:
            return
        self._read.add(name)
        for path in sorted(folder.glob(f"{name}-*.safetensors")):
            held = load_file(path)
            keys = [bytes(key) for key in held["keys"].tolist()]
            self._known |= {(name, key): vector for key, vector in zip(keys, held["vectors"], strict=True)}


def _write(folder: Path, name: str, keys: Sequence[bytes], vectors: Tensor) -> None:
    payload = save({"keys": torch.tensor([list(key) for key in keys], dtype=torch.uint8), "vectors": vectors})

    def put(stream: BinaryIO) -> None:
        stream.write(payload)

    replace_atomically(folder / f"{name}-{keys[0].hex()}.safetensors", put)


def _key(row: Row) -> bytes:
    text = f"{row.context}|{row.response}"
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


@torch.inference_mode()
def _encode(network: EvaluatorNetwork, tokenizer: Any, rows: Sequence[Row]) -> Tensor:
    """(N, parts, L, W) by the network's encoder, in evaluation mode."""
    training = network.training
    network.eval()
    attention = network.architecture.attention
    groups = bundles(rows, range(len(rows)), 1 if attention == "joint" else _PACK)
    device = network.head.mean.device
    found: Tensor | None = None
    for part in batches_by_length(rows, groups, _BATCH):
        batch = collate(rows, part, tokenizer.cls_token_id, tokenizer.pad_token_id, attention).to(device)
        values = network.encoder.pooled(batch).float().cpu()
        if found is None:
            found = torch.empty(len(rows), *values.shape[1:])
        found[batch.rows.cpu()] = values
    network.train(training)
    return torch.empty(0) if found is None else found
