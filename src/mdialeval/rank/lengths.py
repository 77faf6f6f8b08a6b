"""Pairs longer than the model's window, and pairs that no model should see: treated before a model is asked."""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from mdialeval.errors import DataError
from mdialeval.records import Translation

log = logging.getLogger(__name__)

OnLong = Literal["truncate", "window", "skip", "error"]
Pair = tuple[str, str]
_MOST_PARTS = 64


class PairModel(Protocol):
    """What is behind an estimator: a function of texts with a limited window.

    Attributes:
        limit: tokens that fit, special tokens included.
    """

    limit: int

    def count(self, pairs: Sequence[Pair]) -> list[int]:
        """Tokens that each pair needs of the window: of its longer side, or of both where both share it."""
        ...

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """One score a pair; what does not fit is cut."""
        ...


class Length(NamedTuple):
    """How long a pair is for a model: ``tokens`` needed and the ``limit`` of its window; 0 where it is not sent."""

    tokens: int
    limit: int

    @property
    def truncated(self) -> bool:
        """Whether the model sees only a part (unless windows are used)."""
        return self.tokens > self.limit


def estimable(row: Translation) -> bool:
    """Whether there are two texts to compare: a model gives empty ones a number all the same."""
    return row.status not in ("failed", "empty") and bool(row.source.strip()) and bool(row.hypothesis.strip())


def measure(model: PairModel, rows: Sequence[Translation]) -> list[Length]:
    """The length of every row, same order."""
    pairs = list(dict.fromkeys(_texts(row) for row in rows if estimable(row)))
    tokens = dict(zip(pairs, model.count(pairs), strict=True)) if pairs else {}
    return [Length(tokens[_texts(row)] if estimable(row) else 0, model.limit) for row in rows]


def _texts(row: Translation) -> Pair:
    """Both texts as tokenizers take them: half a surrogate pair, as broken JSON escapes leave it, becomes ``?``."""
    source, hypothesis = (text.encode("utf-8", "replace").decode() for text in (row.source, row.hypothesis))
    return source, hypothesis


def estimate(model: PairModel, rows: Sequence[Translation], on_long: OnLong = "truncate") -> list[float]:
    """One score a row, same order; NaN where there is nothing to compare, or where a long row is skipped.

    Args:
        model: what scores texts.
        rows: any number of translations, also none.
        on_long: ``truncate`` lets the model cut; ``window`` cuts both texts into as many parts, at blanks where there
            are any, scores part against part and takes the mean, weighted by the length of the hypothesis; ``skip``
            gives NaN; ``error`` stops at the first long row.

    Raises:
        DataError: a row is too long and ``on_long`` is ``error``.
    """
    scores = [math.nan] * len(rows)
    usable = [i for i, row in enumerate(rows) if estimable(row)]
    lengths = measure(model, rows)
    long = [i for i in usable if lengths[i].truncated]
    if long:
        first = rows[long[0]]
        if on_long == "error":
            raise DataError(
                f"{len(long)} of {len(rows)} rows do not fit into the estimator's window of {model.limit} tokens; the "
                f"first, {first.id!r} ({first.language}), has {lengths[long[0]].tokens}: shorten it, or set "
                "rank.on_long to truncate, window or skip"
            )
        done = {"truncate": "cut", "window": "scored in windows", "skip": "skipped"}[on_long]
        log.warning("%d of %d rows are longer than %d tokens and are %s", len(long), len(rows), model.limit, done)
    apart = set(long) if on_long in ("window", "skip") else set()
    whole = [i for i in usable if i not in apart]
    for i, score in zip(whole, model.score([_texts(rows[i]) for i in whole]), strict=True):
        scores[i] = score
    if on_long == "window":
        for i in long:
            scores[i] = _windowed(model, _texts(rows[i]), lengths[i].tokens)
    return scores


def _windowed(model: PairModel, pair: Pair, tokens: int) -> float:
    parts = math.ceil(tokens / model.limit)
    while parts <= _MOST_PARTS:
        windows = [
            w for w in zip(pieces(pair[0], parts), pieces(pair[1], parts), strict=True) if all(map(str.strip, w))
        ]
        if windows and max(model.count(windows)) <= model.limit:
            weights = [len(hypothesis) for _, hypothesis in windows]
            return sum(w * s for w, s in zip(weights, model.score(windows), strict=True)) / sum(weights)
        parts += 1
    return math.nan


def pieces(text: str, parts: int) -> list[str]:
    """A text in parts of about equal length, cut at blanks where there are any nearby.

    >>> pieces("one two three four", 2), pieces("一二三四五六", 3)
    (['one two ', 'three four'], ['一二', '三四', '五六'])
    """
    borders = [0]
    for part in range(1, parts):
        aim = len(text) * part // parts
        reach = max(1, len(text) // parts // 2)
        blanks = [i + 1 for i in range(max(borders[-1], aim - reach), min(len(text), aim + reach)) if text[i].isspace()]
        borders.append(max(borders[-1], min(blanks, key=lambda i: abs(i - aim)) if blanks else aim))
    borders.append(len(text))
    return [text[a:b] for a, b in itertools.pairwise(borders)]
