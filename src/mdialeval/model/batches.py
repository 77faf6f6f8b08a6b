"""Batches: pairs that share a context are packed into one sequence, so that the context is encoded once.

A sequence is ``[start] context, response 1, response 2 ...``.  Every token has an *owner*: 0 for the context, k for
the k-th response, -1 for padding; who attends to whom follows from the owners (``encoder.attention_mask``), and
positions restart for every response, so a pair's score does not depend on what else is in its sequence or batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch

from mdialeval.model.markup import Row

Attention = Literal["shared", "joint", "separate"]


class Batch(NamedTuple):
    """S sequences of at most T tokens that hold P pairs.

    Attributes:
        input_ids: (S, T), padded.
        positions: (S, T), counted from 0.
        owners: (S, T), see the module docstring.
        sequence: (P,), the sequence of each pair.
        slot: (P,), the owner number of each pair's response in its sequence, from 1.
        rows: (P,), which row of the input each pair is.
    """

    input_ids: torch.Tensor
    positions: torch.Tensor
    owners: torch.Tensor
    sequence: torch.Tensor
    slot: torch.Tensor
    rows: torch.Tensor

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on a device."""
        return Batch(*(part.to(device) for part in self))


def bundles(rows: Sequence[Row], order: Sequence[int], pack: int) -> list[list[int]]:
    """Indices of rows, in groups of at most ``pack`` with one context, in the order of each group's first row.

    >>> r = [Row((5,), (6,), 4, 0, False), Row((7,), (6,), 4, 0, False), Row((5,), (8,), 4, 0, False)]
    >>> bundles(r, [0, 1, 2], pack=8)
    [[0, 2], [1]]
    """
    open_bundles: dict[tuple[int, ...], list[int]] = {}
    found: list[list[int]] = []
    for index in order:
        context = rows[index].context
        bundle = open_bundles.get(context)
        if bundle is None or len(bundle) >= pack or not context:
            bundle = []
            open_bundles[context] = bundle
            found.append(bundle)
        bundle.append(index)
    return found


def packed_length(rows: Sequence[Row], bundle: Sequence[int]) -> int:
    """Tokens of the sequence that holds a bundle."""
    return 1 + len(rows[bundle[0]].context) + sum(len(rows[i].response) for i in bundle)


def batches_by_length(rows: Sequence[Row], groups: Sequence[list[int]], batch_size: int) -> list[list[list[int]]]:
    """Bundles sorted by length and cut into batches of about ``batch_size`` pairs (at least one bundle each)."""
    ordered = sorted(groups, key=lambda g: (packed_length(rows, g), g))
    batches: list[list[list[int]]] = []
    held = batch_size
    for group in ordered:
        if held + len(group) > batch_size:
            batches.append([])
            held = 0
        batches[-1].append(group)
        held += len(group)
    return batches


def collate(rows: Sequence[Row], groups: Sequence[Sequence[int]], start: int, pad: int, attention: Attention) -> Batch:
    """The batch of some bundles.

    Args:
        rows: all rows.
        groups: indices of rows; the rows of a group share their context.
        start: id of the token that opens a sequence.
        pad: id of the padding token.
        attention: ``separate`` opens every response with the start token and counts its positions from 0.
    """
    ids: list[list[int]] = []
    positions: list[list[int]] = []
    owners: list[list[int]] = []
    where: list[tuple[int, int, int]] = []
    for s, group in enumerate(groups):
        context = rows[group[0]].context
        alone = attention == "separate" or not context  # each response opens its own block
        line = [start, *context] if context else []
        place, owner, base = list(range(len(line))), [0] * len(line), 0 if alone else len(line)
        for slot, index in enumerate(group, start=1):
            block = [start, *rows[index].response] if alone else list(rows[index].response)
            line += block
            place += range(base, base + len(block))
            owner += [slot] * len(block)
            where.append((s, slot, index))
        ids.append(line)
        positions.append(place)
        owners.append(owner)
    longest = max(len(line) for line in ids)
    return Batch(
        _padded(ids, longest, pad),
        _padded(positions, longest, 0),
        _padded(owners, longest, -1),
        *(torch.tensor(column) for column in zip(*where, strict=True)),
    )


def _padded(lines: list[list[int]], longest: int, fill: int) -> torch.Tensor:
    return torch.tensor([line + [fill] * (longest - len(line)) for line in lines])
