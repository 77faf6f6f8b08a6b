"""How many rows went in, why rows were dropped, how many came out: one funnel per language and k."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mdialeval.rank.columns import Columns
from mdialeval.rank.combine import is_constant
from mdialeval.rank.select import BELOW_CUT, KEPT, NOT_A_NUMBER, Selection
from mdialeval.records import Translation

Rows = NDArray[np.int64]
SAMPLES = 5
QUINTILES = 5


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
        cut_score: the score at that rank; None where nothing was kept.
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
    return {place: _spread(rows) for place, rows in _by_reason(selection, 0).items()}


def funnels(selection: Selection, texts: Mapping[int, Translation] | None = None) -> list[Funnel]:
    """One funnel for every language and every k, in order.

    Args:
        selection: the ranked rows.
        texts: row number -> translation, at least for ``sample_rows``; samples are shown at the first k.
    """
    found = []
    for place, k in enumerate(selection.k):
        by_reason = _by_reason(selection, place)
        for code, language in enumerate(selection.columns.languages):
            rows = np.flatnonzero(selection.columns.language == code)
            groups = {reason: there for (name, reason), there in by_reason.items() if name == language}
            steps = tuple(
                FunnelStep(reason, len(there), _samples(selection, there, texts or {}) if place == 0 else ())
                for reason, there in groups.items()
            )
            found.append(_funnel(selection, language, k, place, rows, steps))
    return found


def _funnel(
    selection: Selection, language: str, k: float, place: int, rows: Rows, steps: tuple[FunnelStep, ...]
) -> Funnel:
    cut_rank = selection.cuts[language][place]
    ranked = rows[selection.rank[rows] > 0]
    kept = selection.rank[ranked] <= cut_rank
    fifths = np.array_split(kept[np.argsort(selection.columns.length[ranked], kind="stable")], QUINTILES)
    return Funnel(
        language=language,
        k=k,
        n_in=len(rows),
        n_ranked=len(ranked),
        n_out=int(kept.sum()),
        steps=steps,
        cut_rank=cut_rank,
        cut_score=float(selection.score[ranked][kept].min()) if kept.any() else None,
        constant=language in selection.constant,
        n_truncated=int(selection.columns.truncated[rows].sum()),
        kept_by_length=tuple(float(part.mean()) for part in fifths if len(part)),
    )


def _by_reason(selection: Selection, place: int) -> dict[tuple[str, str], Rows]:
    """(language, reason) -> row numbers, where there are any; the reasons in the order of the funnel."""
    columns = selection.columns
    kept, unknown = selection.kept(selection.k[place]), np.isnan(selection.score)
    ranked = selection.rank > 0
    masks = [(reason, columns.left_out == code) for code, reason in enumerate(columns.reasons)]
    masks += [
        (NOT_A_NUMBER, ranked & unknown),
        (BELOW_CUT, ranked & ~unknown & ~kept),
        (KEPT, kept),
    ]
    found = {}
    for code, language in enumerate(columns.languages):
        for reason, mask in masks:
            if len(rows := np.flatnonzero(mask & (columns.language == code))):
                found[language, reason] = rows
    return found


def _spread(rows: Rows) -> tuple[int, ...]:
    places = np.linspace(0, len(rows) - 1, min(SAMPLES, len(rows))).round().astype(np.int64)
    return tuple(int(row) for row in rows[places])


def _samples(selection: Selection, rows: Rows, texts: Mapping[int, Translation]) -> tuple[Sample, ...]:
    shown = []
    for row in _spread(rows):
        if (text := texts.get(row)) is not None:
            score = float(selection.score[row])
            shown.append(Sample(text.id, text.source, text.hypothesis, None if np.isnan(score) else score))
    return tuple(shown)
