"""DistSim: how alike the numbers of scenes (H), participants (A) and adverbials (D) of two UCCA annotations are.

A measure of distribution only: it compares counts, not units (Choshen and Abend, NAACL 2018; after Sulem et al., 2015).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mdialeval.graphs.ucca_codec import Passage
from mdialeval.graphs.usim_view import from_passage

CATEGORIES = ("H", "A", "D")


@dataclass(frozen=True, slots=True)
class DistSim:
    """DistSim of one or more pairs for one category or a pool of categories.

    Attributes:
        category: such as ``H`` or ``A+D``.
        shared: sum over pairs and categories of the smaller count.
        source, target: sums of the counts.
        f1: harmonic mean of shared/source and shared/target, in [0, 1], higher is more alike; None without any unit.
        mean_difference: mean over pairs of |count difference| (pool: of the pooled counts), 0 is equal; the definition
            of the paper's text, where the numbers of its table come from the code's ``f1``.
    """

    category: str
    shared: int
    source: int
    target: int
    f1: float | None
    mean_difference: float


def counts(passage: Passage) -> Counter[str]:
    """How many comparable units (more than one terminal, not the root) have each category on their primary edge."""
    return Counter(from_passage(passage).primary)


def distsim(
    pairs: Iterable[tuple[Passage, Passage]], pools: Sequence[str] = ("H", "A", "D", "A+D")
) -> dict[str, DistSim]:
    """DistSim of pairs of passages, pooled over the pairs (micro), for categories and pools such as ``A+D``.

    Raises:
        ValueError: no pairs, or a passage that is not ``ok``.
    """
    counted = []
    for first, second in pairs:
        bad = next((p for p in (first, second) if p.status != "ok"), None)
        if bad is not None:
            raise ValueError(f"passage {bad.id!r} is {bad.status}: {bad.detail}")
        counted.append((counts(first), counts(second)))
    if not counted:
        raise ValueError("DistSim needs at least one pair of passages")
    return {pool: _pooled(pool, counted) for pool in pools}


def _pooled(pool: str, counted: Sequence[tuple[Counter[str], Counter[str]]]) -> DistSim:
    tags = pool.split("+")
    shared = sum(min(a[t], b[t]) for a, b in counted for t in tags)
    source, target = (sum(side[t] for pair in counted for side in (pair[which],) for t in tags) for which in (0, 1))
    difference = sum(abs(sum(a[t] for t in tags) - sum(b[t] for t in tags)) for a, b in counted) / len(counted)
    f1 = 2 * shared / (source + target) if source + target else None
    return DistSim(pool, shared, source, target, f1, difference)
