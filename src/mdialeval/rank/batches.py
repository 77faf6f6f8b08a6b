"""Batches of like length, halved where the memory does not suffice."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from mdialeval.devices import out_of_memory, release_memory
from mdialeval.errors import BackendError

log = logging.getLogger(__name__)
_TOKENS_PER_ROW = 64  # a batch holds at most ``size`` rows and ``size`` times this many tokens


class Batches:
    """Runs a function over rows in batches of like length.

    Args:
        size: rows a batch at most; halved, and said so, each time the memory does not suffice.
    """

    def __init__(self, size: int) -> None:
        self.size = size

    def gather(self, run: Callable[[Sequence[int]], Tensor], lengths: Sequence[int]) -> Tensor:
        """Row results in input order, at least one row.

        Args:
            run: row numbers -> (rows, D), all of them at most as long as the first.
            lengths: tokens of each row.

        Raises:
            BackendError: the memory does not suffice for a single row.
        """
        order = sorted(range(len(lengths)), key=lambda row: -lengths[row])  # longest first: memory fails early
        done: list[Tensor] = []
        at = 0
        while at < len(order):
            longest = max(lengths[order[at]], 1)
            count = max(1, min(self.size, len(order) - at, self.size * _TOKENS_PER_ROW // longest))
            try:
                done.append(run(order[at : at + count]))
            except RuntimeError as error:
                if not out_of_memory(error):
                    raise
                self._halve(count, longest, error)
                continue
            at += count
        result = torch.cat(done)
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return result[back.to(result.device)]

    def _halve(self, count: int, tokens: int, error: RuntimeError) -> None:
        release_memory()
        if count <= 1:
            raise BackendError(
                "estimator",
                f"out of memory on one row of {tokens} tokens",
                hint="use on_long: window, or another device",
            ) from error
        self.size = max(1, min(self.size, count) // 2)
        log.warning(
            "out of memory with %d rows of %d tokens; going on with at most %d rows a batch", count, tokens, self.size
        )


def pad(ids: Sequence[Sequence[int]], padding: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Token ids as (B, T) int64 and their mask (B, T) int64, padded on the right."""
    longest = max(map(len, ids))
    tokens = torch.full((len(ids), longest), padding, dtype=torch.long)
    mask = torch.zeros((len(ids), longest), dtype=torch.long)
    for row, sequence in enumerate(ids):
        tokens[row, : len(sequence)] = torch.tensor(sequence, dtype=torch.long)
        mask[row, : len(sequence)] = 1
    return tokens.to(device), mask.to(device)
