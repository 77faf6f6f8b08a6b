"""How many rows went in, why rows were dropped, how many came out: one funnel per language and k."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mdialeval.rank.columns import Columns
from mdialeval.rank.combine import is_constant
from mdialeval.rank.select import BELOW_CUT, KEPT, NOT_A_NUMBER, Selection, length_bins
from mdialeval.records import Translation

Mask = NDArray[np.bool_]
SAMPLES = 5
QUINTILES = 5
_BLOCK = 65_536


@dataclass(frozen=True, slots=True)
class Sample:
    """One row shown as an example."""

    id: str
    source: str
    hypothesis: str
    score: float | None


@dataclass(frozen=True, slots=True)
class FunnelStep:
    """The rows of one language with one reason: how many, and a few of them, spread over the input."""

    reason: str
    n: int
    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True)
class Signal:
    """What one estimator gave to a combined score in one language.

    Attributes:
        weight: of its z-scores, relative to the other parts' weights.
        n_scored: ranked rows that it scored; a row that lacks one of the parts has no combined score.
        constant: whether its scores are all equal, so that it does not count.
    """

    name: str
    weight: float
    n_scored: int
    constant: bool


@dataclass(frozen=True, slots=True)
class Funnel:
    """One language's way through ``rank``.

    Attributes:
        k: per cent kept, of the rows that were ranked.
        n_in: rows in.
        n_ranked: rows that entered the ranking.
        n_out: rows kept.
        steps: each reason for dropping a row in the order in which it applies, last the rows kept.
        cut_rank: the last rank kept.
        cut_score: the lowest score kept, which without strata is that of the last rank; None where nothing was kept.
        mean_score: of what was kept.
        constant: whether all scores are equal, so that the ranking says nothing.
        n_truncated: rows of which the estimator saw only a part.
        kept_by_length: share kept in each fifth of the ranked rows by source length, shortest first (equal lengths by
            input order); far from k it says that the estimator selects by length.
        signals: the parts of a combined score; empty for a single estimator.
    """

    language: str
    k: float
    n_in: int
    n_ranked: int
    n_out: int
    steps: tuple[FunnelStep, ...]
    cut_rank: int
    cut_score: float | None
    mean_score: float | None
    constant: bool
    n_truncated: int
    kept_by_length: tuple[float, ...]
    signals: tuple[Signal, ...] = ()


def signal(columns: Columns, name: str, weight: float, values: NDArray[np.float64]) -> Signal:
    """What a part of a combined score gave to the rows of one language.

    Args:
        columns: the rows, of one language.
        name: of the part.
        weight: of the part.
        values: (N,) its scores, NaN where there is none.
    """
    scored = values[(columns.left_out < 0) & ~np.isnan(values)]
    return Signal(name, weight, len(scored), len(scored) > 1 and is_constant(scored))


def sample_rows(selection: Selection) -> dict[tuple[str, str], tuple[int, ...]]:
    """(language, reason) -> a few row numbers, evenly spread: the rows whose texts ``funnels`` wants to see."""
    return {
        (language, reason): _spread(mask)
        for code, language in enumerate(selection.columns.languages)
        for reason, mask in _by_reason(selection, 0, selection.columns.language == code)
    }


def funnels(selection: Selection, texts: Mapping[int, Translation] | None = None) -> list[Funnel]:
    """One funnel for every language and every k, in order.

    Args:
        selection: the ranked rows.
        texts: row number -> translation, at least for ``sample_rows``; samples are shown at the first k.
    """
    found: list[list[Funnel]] = [[] for _ in selection.k]
    for code, language in enumerate(selection.columns.languages):
        rows = selection.columns.language == code
        fifths = length_bins(selection.columns.length, QUINTILES, rows & (selection.rank > 0))
        sizes = [int(np.count_nonzero(fifths == fifth)) for fifth in range(QUINTILES)]
        for place in range(len(selection.k)):
            found[place].append(_funnel(selection, language, place, rows, (fifths, sizes), texts or {}))
    return [funnel for same_k in found for funnel in same_k]


def _funnel(
    selection: Selection,
    language: str,
    place: int,
    rows: Mask,
    by_length: tuple[NDArray[np.int8], list[int]],
    texts: Mapping[int, Translation],
) -> Funnel:
    cut_rank = selection.cuts[language][place]
    kept = rows & (selection.rank > 0) & (selection.rank <= cut_rank)
    n_out = int(np.count_nonzero(kept))
    fifths, sizes = by_length
    steps = tuple(
        FunnelStep(reason, int(np.count_nonzero(mask)), _samples(selection, mask, texts) if place == 0 else ())
        for reason, mask in _by_reason(selection, place, rows)
    )
    return Funnel(
        language=language,
        k=selection.k[place],
        n_in=int(np.count_nonzero(rows)),
        n_ranked=sum(sizes),
        n_out=n_out,
        steps=steps,
        cut_rank=cut_rank,
        cut_score=float(np.min(selection.score, where=kept, initial=np.inf)) if n_out else None,
        mean_score=float(np.mean(selection.score, where=kept)) if n_out else None,
        constant=language in selection.constant,
        n_truncated=int(np.count_nonzero(rows & selection.columns.truncated)),
        kept_by_length=tuple(
            np.count_nonzero(kept & (fifths == fifth)) / size for fifth, size in enumerate(sizes) if size
        ),
    )


def _by_reason(selection: Selection, place: int, rows: Mask) -> Iterator[tuple[str, Mask]]:
    """(reason, which rows) of some rows, where there are any; the reasons in the order of the funnel."""
    columns = selection.columns
    for code, reason in enumerate(columns.reasons):
        if (mask := rows & (columns.left_out == code)).any():
            yield reason, mask
    kept = selection.kept(selection.k[place])
    for reason in (NOT_A_NUMBER, BELOW_CUT, KEPT):
        mask = rows & (selection.rank > 0)
        if reason == KEPT:
            mask &= kept
        else:
            mask &= np.isnan(selection.score) == (reason == NOT_A_NUMBER)
            mask &= ~kept
        if mask.any():
            yield reason, mask


def _spread(mask: Mask) -> tuple[int, ...]:
    """A few of the rows of a mask, evenly spread; found block by block, without the numbers of all."""
    counts = [int(np.count_nonzero(mask[start : start + _BLOCK])) for start in range(0, len(mask), _BLOCK)]
    ends = np.cumsum(counts)
    wanted = np.linspace(0, ends[-1] - 1, min(SAMPLES, int(ends[-1]))).round().astype(np.int64)
    found = []
    for place in wanted:
        block = int(np.searchsorted(ends, place, side="right"))
        rows = np.flatnonzero(mask[block * _BLOCK : (block + 1) * _BLOCK])
        found.append(block * _BLOCK + int(rows[place - (ends[block] - counts[block])]))
    return tuple(found)


def _samples(selection: Selection, mask: Mask, texts: Mapping[int, Translation]) -> tuple[Sample, ...]:
    shown = []
    for row in _spread(mask):
        if (text := texts.get(row)) is not None:
            score = float(selection.score[row])
            shown.append(Sample(text.id, text.source, text.hypothesis, None if np.isnan(score) else score))
    return tuple(shown)
