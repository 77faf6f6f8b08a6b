"""One score out of several: brought to one scale, averaged, or weighted by how each agrees with ratings.

Whatever is fitted is fitted on a part that the caller names, and is a frozen value that remembers that part's dialogue
groups, so that it cannot be checked on what it was fitted on (``Fusion.check_unseen``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.stats import rankdata

from mdialeval.agreement.agree import Source, group_of
from mdialeval.agreement.correlations import correlation, p_value
from mdialeval.errors import DataError
from mdialeval.records import Example, Prediction, PredictionStatus

Scores = Sequence[float | None]
Scale = Literal["ranks", "scores"]

DETECTABLE = 0.05
"""A correlation whose p-value is not below this gets no weight."""


@dataclass(frozen=True, slots=True)
class MinMax:
    """A scale from the lowest to the highest score of a development part."""

    low: float
    high: float

    @classmethod
    def fit(cls, scores: Iterable[float | None]) -> MinMax:
        """The range of the scores that are there.

        Raises:
            DataError: fewer than two distinct scores.
        """
        known = [s for s in scores if s is not None]
        if len(set(known)) < 2:
            raise DataError(f"{len(known)} scores with {len(set(known))} distinct values have no range to scale by")
        return cls(min(known), max(known))

    def apply(self, scores: Scores) -> list[float | None]:
        """A new list on [0, 1]; what lies outside the fitted range is clipped, None stays None.

        >>> MinMax(1.0, 5.0).apply([1.0, 3.0, 9.0, None])
        [0.0, 0.5, 1.0, None]
        """
        width = self.high - self.low
        return [None if s is None else min(1.0, max(0.0, (s - self.low) / width)) for s in scores]


def z_scores(scores: Scores) -> list[float | None]:
    """Standard scores (mean 0, standard deviation 1 over the scores that are there); all 0 where they are equal.

    >>> z_scores([1.0, 3.0, None])
    [-1.0, 1.0, None]
    """
    known = np.array([s for s in scores if s is not None], np.float64)
    if not len(known):
        return list(scores)
    if known.min() == known.max():  # rounding can give equal scores a spread of their own
        return [None if s is None else 0.0 for s in scores]
    mean, spread = float(known.mean()), float(known.std())
    return [None if s is None else (s - mean) / spread for s in scores]


def rank_shares(scores: Scores) -> list[float | None]:
    """Each score's place among those that are there, in (0, 1): (rank - 1/2) / n, equal scores sharing their mean rank.

    >>> rank_shares([0.9, 0.1, None, 0.1, 0.5])
    [0.875, 0.25, None, 0.25, 0.625]
    """
    known = [s for s in scores if s is not None]
    places = iter((rankdata(known) - 0.5) / len(known) if known else ())
    return [None if s is None else float(next(places)) for s in scores]


def ensemble(members: Sequence[Scores]) -> list[float | None]:
    """The mean over members, row by row; None where any member has no score, so that rows stay comparable.

    >>> ensemble([[0.2, 0.4], [0.4, None]])
    [0.30000000000000004, None]
    """
    return [
        None if any(s is None for s in row) else sum(s for s in row if s is not None) / len(row)
        for row in zip(*members, strict=True)
    ]


SCALES: Mapping[Scale, Callable[[Scores], list[float | None]]] = {"ranks": rank_shares, "scores": z_scores}


def average(
    predictions: Iterable[Prediction],
    examples: Sequence[Example],
    name: str,
    by: Scale = "ranks",
    dataset: str | None = None,
) -> list[Prediction]:
    """Several scorers as one that nothing is fitted for: the mean of their ranks, dimension by dimension.

    Ranks, and standard scores, are those among the examples of a language, so a score depends on the rows that it is
    scored with.  A row that one of the members did not score is ``failed`` and names the member; one of which a member
    read only a part is ``truncated``.

    Args:
        predictions: of all members.
        examples: all rows of one data set.
        name: what the result is called.
        by: ``ranks`` (see ``rank_shares``) count alike whatever the scores' distributions are; ``scores`` (see
            ``z_scores``) keep distances, and a scorer whose scores lie at both ends then counts most.
        dataset: its name, for messages.

    Raises:
        DataError: no dimension is measured by two of the members.
    """
    rows = list(predictions)
    by_source = _by_source(rows)
    cut = {(p.scorer, p.dimension, p.example_id, p.language) for p in rows if p.status == "truncated"}
    measured: dict[str, list[Source]] = {}
    for source in dict.fromkeys((p.scorer, p.dimension) for p in rows):  # also those that scored nothing
        measured.setdefault(source[1], []).append(source)
    joined = {dimension: sources for dimension, sources in measured.items() if len(sources) > 1}
    if not joined:
        raise DataError(
            f"nothing to average for {name!r}: no dimension has scores of two of "
            f"{', '.join(map(_shown, dict.fromkeys(s for of in measured.values() for s in of))) or 'its members'}: "
            "join scorers that measure the same",
            dataset,
        )
    found: dict[tuple[str, str, str], Prediction] = {}
    for language in dict.fromkeys(e.language for e in examples):
        keys = [(e.id, e.language) for e in examples if e.language == language]
        for dimension, sources in joined.items():
            columns = [[by_source.get(source, {}).get(key) for key in keys] for source in sources]
            means = ensemble([SCALES[by](column) for column in columns])
            for place, (key, mean) in enumerate(zip(keys, means, strict=True)):
                lacking = [source[0] for source, column in zip(sources, columns, strict=True) if column[place] is None]
                detail = {"missing": ", ".join(lacking)} if lacking else {}
                partly = any((*source, *key) in cut for source in sources)
                status: PredictionStatus = "failed" if lacking else "truncated" if partly else "ok"
                found[*key, dimension] = Prediction(*key, name, dimension, mean, status, detail)
    return [found[e.id, e.language, dimension] for e in examples for dimension in joined]


class Weight(NamedTuple):
    """A score's weight and the agreement it rests on (Spearman on the development part)."""

    weight: float
    rho: float | None
    reason: str


def rescaled_weights(
    scores: Mapping[str, Sequence[float]], ratings: Sequence[float], *, may_be_negative: Collection[str] = ()
) -> dict[str, Weight]:
    """Correlation-rescaled weights, after the DSTC11 system of Mendonca et al. (2023).

    Each weight is rho * abs(rho) over the sum of all rho squared, so the absolute weights sum to 1 whatever their
    signs.  A rho that is negative (unless its score may be) or not told from 0 is set to 0; where that leaves
    nothing, only the negative ones are.

    Args:
        scores: name -> n scores of the development part.
        ratings: n ratings of the development part.
        may_be_negative: scores of which a lower value may be better, such as a pseudo-likelihood loss.

    Raises:
        DataError: no score agrees with the ratings at all.
    """
    y = np.asarray(ratings, np.float64)
    found = {name: correlation("spearman", values, y) for name, values in scores.items()}
    signed = {
        name: 0.0 if value is None or (value < 0 and name not in may_be_negative) else value
        for name, (value, _) in found.items()
    }
    p_values = {name: p_value("spearman", np.asarray(values, np.float64), y) for name, values in scores.items()}
    detectable = {name: rho if (p_values[name] or 0.0) < DETECTABLE else 0.0 for name, rho in signed.items()}
    kept = detectable if any(detectable.values()) else signed
    total = sum(rho * rho for rho in kept.values())
    if total == 0:
        raise DataError(f"none of {', '.join(scores)} agrees with the ratings of the development part ({len(y)} rows)")
    return {
        name: Weight(rho * abs(rho) / total, found[name].value, found[name].reason or _why(rho, found[name].value))
        for name, rho in kept.items()
    }


def _why(kept: float, rho: float | None) -> str:
    if kept or not rho:
        return ""
    return "negative" if rho < 0 else f"p >= {DETECTABLE}"


@dataclass(frozen=True, slots=True)
class Fusion:
    """A fitted weighted score.

    Attributes:
        dimension: the rating it was fitted to.
        scales: per source with a weight, its range on the development part.
        weights: per source; the absolute weights sum to 1.
        n: rows it was fitted on.
        groups: dialogue groups of the development part.
    """

    dimension: str
    scales: Mapping[Source, MinMax]
    weights: Mapping[Source, Weight]
    n: int
    groups: frozenset[str]

    def check_unseen(self, examples: Iterable[Example]) -> None:
        """Refuse examples of dialogues that the weights were fitted on.

        Raises:
            DataError: names some of the shared dialogue groups.
        """
        shared = sorted({group_of(e) for e in examples} & self.groups)
        if shared:
            raise DataError(
                f"{len(shared)} dialogues were used to fit the weights and are to be scored: {', '.join(shared[:3])}; "
                "fit on a development part of other dialogues"
            )


def fit_fusion(
    predictions: Iterable[Prediction],
    development: Sequence[Example],
    dimension: str,
    *,
    may_be_negative: Collection[Source] = (),
) -> Fusion:
    """Fit ranges and correlation-rescaled weights on a development part.

    Args:
        predictions: of any examples; only those of the development part are used.
        development: rated examples, of dialogues that are not in the test part.
        dimension: the rating to fit to.
        may_be_negative: sources of which a lower value may be better.

    Raises:
        DataError: fewer than 3 rows are rated and scored by all sources, or none agrees with the ratings.
    """
    rated = {(e.id, e.language): e for e in development if dimension in e.ratings}
    by_source = {source: rows for source, rows in _by_source(predictions).items() if rows.keys() & rated.keys()}
    complete = [key for key in rated if by_source and all(key in rows for rows in by_source.values())]
    if len(complete) < 3:
        raise DataError(
            f"{len(complete)} of {len(rated)} examples rated on {dimension!r} are scored by all of "
            f"{[' '.join(s) for s in by_source]}: at least 3 are needed to fit weights"
        )
    columns = {source: [rows[key] for key in complete] for source, rows in by_source.items()}
    named = {_shown(source): values for source, values in columns.items()}
    weights = rescaled_weights(
        named, [rated[k].ratings[dimension] for k in complete], may_be_negative=[_shown(s) for s in may_be_negative]
    )
    scales = {source: MinMax.fit(values) for source, values in columns.items() if weights[_shown(source)].weight}
    return Fusion(
        dimension,
        scales,
        {source: weights[_shown(source)] for source in columns},
        len(complete),
        frozenset(group_of(rated[key]) for key in complete),
    )


def _shown(source: Source) -> str:
    """A source as a name for people."""
    return f"{source[0]} ({source[1]})"


def fuse(predictions: Iterable[Prediction], fusion: Fusion, examples: Sequence[Example], name: str) -> list[Prediction]:
    """The fused score of each example, in [-1, 1], higher is better.

    A row that one of the weighted sources did not score is ``failed`` and names the source; nothing is filled in.

    Args:
        predictions: of all sources of the fusion.
        examples: the test part; none of its dialogues may have been used for the fit.
        name: what the fused scorer is called.

    Raises:
        DataError: the examples share dialogues with the development part.
    """
    fusion.check_unseen(examples)
    by_source = _by_source(predictions)
    weighted = {source: w.weight for source, w in fusion.weights.items() if w.weight}
    fused = []
    for e in examples:
        key = (e.id, e.language)
        lacking = [" ".join(source) for source in weighted if key not in by_source.get(source, {})]
        if lacking:
            detail = {"missing": ", ".join(lacking)}
            fused.append(Prediction(e.id, e.language, name, fusion.dimension, None, "failed", detail))
            continue
        scaled = {source: fusion.scales[source].apply([by_source[source][key]])[0] for source in weighted}
        score = sum(weight * (scaled[source] or 0.0) for source, weight in weighted.items())
        fused.append(Prediction(e.id, e.language, name, fusion.dimension, score, "ok"))
    return fused


def _by_source(predictions: Iterable[Prediction]) -> dict[Source, dict[tuple[str, str], float]]:
    """Scores by source and row; rows without a score are absent."""
    by_source: dict[Source, dict[tuple[str, str], float]] = {}
    for p in predictions:
        if p.score is not None:
            by_source.setdefault((p.scorer, p.dimension), {})[p.example_id, p.language] = p.score
    return by_source
