"""Every pair of scorers on the rows that both scored: is the difference more than chance?"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from mdialeval.agreement.agree import Key, Source, by_scorer, group_of, index
from mdialeval.agreement.significance import holm, paired_bootstrap
from mdialeval.records import Example, Prediction

log = logging.getLogger(__name__)

SIGNIFICANT = 0.05
"""A p-value that people look for; where none can be that small, it is said."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two scorers on the same rows of one language.

    Attributes:
        first, second: scorer and what it measures.
        n: rows that are rated and that both scored.
        value: first minus second; None where undefined, with the reason.
        low, high: paired bootstrap interval, by dialogue group.
        p_value: two-sided, of no difference, corrected for the family (Holm).
        reason: why there is no value or no interval.
    """

    dataset: str
    language: str
    dimension: str
    statistic: str
    first: Source
    second: Source
    n: int
    value: float | None
    low: float | None
    high: float | None
    p_value: float | None
    reason: str = ""


def compare(
    predictions: Iterable[Prediction],
    examples: Iterable[Example],
    *,
    dataset: str,
    statistic: str = "spearman",
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 13,
) -> list[Comparison]:
    """Paired bootstrap of all pairs of scorers, per language and rated dimension.

    One family for Holm's correction is all pairs of one language and dimension.  No p-value of a family of m is below
    2 m / (resamples + 1); where that is above ``SIGNIFICANT``, a warning says so.

    Raises:
        DataError: an id occurs twice, or a number is not finite.
    """
    rated, scorers = index(examples), by_scorer(predictions)
    rows: list[Comparison] = []
    largest = 0
    for dimension in sorted({d for e in rated.values() for d in e.ratings}):
        for language in sorted({e.language for e in rated.values() if dimension in e.ratings}):
            keys = [k for k, e in rated.items() if e.language == language and dimension in e.ratings]
            family = []
            for first, second in itertools.combinations(scorers, 2):
                one, other = _scores(scorers[first]), _scores(scorers[second])
                both = [k for k in keys if k in one and k in other]
                difference = paired_bootstrap(
                    statistic,
                    [one[k] for k in both],
                    [other[k] for k in both],
                    [rated[k].ratings[dimension] for k in both],
                    [group_of(rated[k]) for k in both],
                    resamples=resamples,
                    confidence=confidence,
                    seed=seed,
                )
                family.append(
                    Comparison(dataset, language, dimension, statistic, first, second, len(both), *difference)
                )
            corrected = holm([c.p_value for c in family])
            rows += [replace(c, p_value=p) for c, p in zip(family, corrected, strict=True)]
            largest = max(largest, sum(p is not None for p in corrected))
    if largest * 2 / (resamples + 1) > SIGNIFICANT:
        log.warning(
            "%s: %d comparisons a language share %d resamples, so that no corrected p-value can be below %.2g: look at "
            "the intervals, compare less at once, or set correlate.resamples to %d or more",
            *(dataset, largest, resamples, min(1.0, largest * 2 / (resamples + 1)), enough_resamples(largest)),
        )
    return rows


def enough_resamples(comparisons: int) -> int:
    """How many resamples a corrected p-value of ``SIGNIFICANT`` needs among some comparisons.

    >>> enough_resamples(10)
    399
    """
    return math.ceil(comparisons * 2 / SIGNIFICANT) - 1


def _scores(scored: Mapping[Key, Prediction]) -> dict[Key, float]:
    return {key: p.score for key, p in scored.items() if p.score is not None}
