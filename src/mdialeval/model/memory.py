"""Batches that do not fit into memory: recognised, cut in two and tried again, and said once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from mdialeval.devices import out_of_memory, release_memory
from mdialeval.errors import BackendError

log = logging.getLogger(__name__)

Bundles = list[list[int]]
"""The rows of a batch, those that share a context together."""


def halves(batch: Bundles) -> list[Bundles]:
    """A batch in two: between bundles, or inside the only one; a single row stays as it is.

    >>> halves([[0, 1], [2], [3]]), halves([[0, 1, 2]]), halves([[0]])
    ([[[0, 1]], [[2], [3]]], [[[0]], [[1, 2]]], [[[0]]])
    """
    if len(batch) > 1:
        middle = len(batch) // 2
        return [batch[:middle], batch[middle:]]
    (bundle,) = batch
    if len(bundle) < 2:
        return [batch]
    return [[bundle[: len(bundle) // 2]], [bundle[len(bundle) // 2 :]]]


class Fitting:
    """Calls a function batch by batch, in smaller batches from the first one on that does not fit.

    Args:
        what: names the work in messages.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self._limit: int | None = None  # rows a call that are known to fit

    def each(self, batches: Sequence[Bundles], call: Callable[[Bundles], None]) -> None:
        """Call with every batch, or with its parts.

        Raises:
            BackendError: a single row does not fit.
        """
        waiting = list(reversed(batches))
        while waiting:
            batch = waiting.pop()
            size = sum(map(len, batch))
            if self._limit is not None and size > self._limit and len(parts := halves(batch)) > 1:
                waiting += reversed(parts)
                continue
            try:
                call(batch)
                continue
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                if size == 1:
                    raise BackendError(
                        self.what, "out of memory with a single row", hint="use a smaller max_tokens or encoder"
                    ) from error
            release_memory()
            if self._limit is None:
                log.warning("%s: out of memory with %d rows a batch; smaller batches from here on", self.what, size)
            self._limit = size // 2
            waiting.append(batch)
