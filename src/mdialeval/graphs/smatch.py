"""Smatch: the F1 of the triples of two graphs under the best map of their variables (Cai and Knight, ACL 2013).

Unlike the hill climbing of the reference tool the map is proved optimal wherever that is feasible, so a graph compared
with itself scores 1, F1 is symmetric and every run gives the same number.  Where there is no proof the result says so
and carries an upper bound.  A graph that is not ``ok`` or ``truncated`` is never scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from mdialeval.graphs.smatch_solve import Limits, Solution, solve
from mdialeval.graphs.smatch_triples import ALIGNED, Aspect, Triples, labels, restricted, triples
from mdialeval.graphs.validate import graph_problem
from mdialeval.records import Graph

SmatchStatus = Literal["ok", "empty", "failed", "invalid"]
NamedTriple = tuple[str, str, str]
DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class SmatchCounts:
    """Triples (or labels) matched, on the source side and on the target side, and what at most could match."""

    matched: int
    source: int
    target: int
    upper_bound: int

    @property
    def precision(self) -> float | None:
        """Share of the target's triples that match, in [0, 1]; None where it has none."""
        return self.matched / self.target if self.target else None

    @property
    def recall(self) -> float | None:
        """Share of the source's triples that match, in [0, 1]; None where it has none."""
        return self.matched / self.source if self.source else None

    @property
    def f1(self) -> float | None:
        """Harmonic mean of both, in [0, 1], higher is more alike; None where neither side has a triple."""
        return 2 * self.matched / (self.source + self.target) if self.source + self.target else None

    @property
    def f1_upper_bound(self) -> float | None:
        """No map of the variables gives a higher F1."""
        return 2 * self.upper_bound / (self.source + self.target) if self.source + self.target else None

    @property
    def optimal(self) -> bool:
        """Whether ``matched`` is proved to be the most that can match."""
        return self.matched == self.upper_bound


@dataclass(frozen=True, slots=True)
class Smatch:
    """Smatch of a pair.

    Attributes:
        counts: of all triples; None exactly where ``status`` is not ``ok``.
        aspects: counts of the parts that were asked for; micro-averages need the counts, so a part that neither graph
        has
            is there with zeros and has no F1.
        mapping: (source node, target node) of the mapped variables that match something.
        missing: triples of the source without a match, as (concept, role, concept or value).
        added: triples of the target without a match.
    """

    counts: SmatchCounts | None
    aspects: dict[Aspect, SmatchCounts] = field(default_factory=dict)
    mapping: tuple[tuple[int, int], ...] = ()
    missing: tuple[NamedTriple, ...] = ()
    added: tuple[NamedTriple, ...] = ()
    status: SmatchStatus = "ok"
    reason: str = ""

    @property
    def f1(self) -> float | None:
        """F1 in [0, 1], or None where the pair was not scored."""
        return self.counts.f1 if self.counts else None


@dataclass(frozen=True, slots=True)
class CorpusSmatch:
    """Micro-averaged Smatch of many pairs.

    Attributes:
        counts: sums over the scored pairs; None where no pair was scored.
        low, high: 95 % percentile bootstrap interval of F1 over pairs (seeded); None with fewer than two pairs.
        aspects: sums for each aspect.
        n, n_scored, n_optimal: pairs, those scored, those proved optimal.
    """

    counts: SmatchCounts | None
    low: float | None
    high: float | None
    aspects: dict[Aspect, SmatchCounts]
    n: int
    n_scored: int
    n_optimal: int


def smatch(source: Graph, target: Graph, aspects: Sequence[Aspect] = (), limits: Limits = DEFAULT_LIMITS) -> Smatch:
    """Smatch of two graphs; to evaluate a parser pass the gold graph as source and the parse as target."""
    for name, graph in (("source", source), ("target", target)):
        status, reason = _unscored(graph)
        if status != "ok":
            return Smatch(None, status=status, reason=f"{name} graph: {reason}")
    first, second = triples(source), triples(target)
    solution = _solve(first, second, limits)
    missing, added = _differences(first, second, solution.mapping)
    return Smatch(
        SmatchCounts(solution.matched, len(first), len(second), solution.upper_bound),
        {aspect: _aspect(first, second, aspect, limits) for aspect in aspects},
        tuple((first.nodes[i], second.nodes[j]) for i, j in enumerate(solution.mapping) if j >= 0),
        missing,
        added,
    )


def _unscored(graph: Graph) -> tuple[SmatchStatus, str]:
    if graph.status in ("ok", "truncated"):
        problem = graph_problem(graph)
        return ("invalid", problem) if problem else ("ok", "")
    return graph.status, graph.detail or graph.status  # type: ignore[return-value]


def _solve(first: Triples, second: Triples, limits: Limits) -> Solution:
    """``solve`` in an order that does not depend on which side is which: F1 is symmetric without a proof too."""
    if _order(first) <= _order(second):
        return solve(first, second, limits)
    back = solve(second, first, limits)
    mapping = [-1] * len(first.concepts)
    for j, i in enumerate(back.mapping):
        if i >= 0:
            mapping[i] = j
    return Solution(tuple(mapping), back.matched, back.upper_bound)


def _order(view: Triples) -> tuple[int, str]:
    return len(view.concepts), repr((view.concepts, view.attributes, view.relations))


def _aspect(first: Triples, second: Triples, aspect: Aspect, limits: Limits) -> SmatchCounts:
    if aspect in ALIGNED:
        a, b = restricted(first, aspect), restricted(second, aspect)
        solution = _solve(a, b, limits)
        return SmatchCounts(solution.matched, len(a), len(b), solution.upper_bound)
    one, other = labels(first, aspect), labels(second, aspect)
    shared = (one & other).total()
    return SmatchCounts(shared, one.total(), other.total(), shared)


def _differences(
    first: Triples, second: Triples, mapping: Sequence[int]
) -> tuple[tuple[NamedTriple, ...], tuple[NamedTriple, ...]]:
    """The triples without a match on each side, concepts instead of variables."""
    back = {j: i for i, j in enumerate(mapping) if j >= 0}
    forward = {i: j for j, i in back.items()}
    return _unmatched(first, second, forward), _unmatched(second, first, back)


def _unmatched(side: Triples, other: Triples, partner: dict[int, int]) -> tuple[NamedTriple, ...]:
    attributes, relations = set(other.attributes), set(other.relations)
    found: list[NamedTriple] = []
    for v, concept in enumerate(side.concepts):
        if v not in partner or other.concepts[partner[v]] != concept:
            found.append((concept or "", "instance", concept or ""))
    for v, role, value in side.attributes:
        if (partner.get(v, -1), role, value) not in attributes:
            found.append((side.concepts[v] or "", role, value))
    for a, role, b in side.relations:
        if (partner.get(a, -1), role, partner.get(b, -1)) not in relations:
            found.append((side.concepts[a] or "", role, side.concepts[b] or ""))
    return tuple(found)


def corpus_smatch(results: Iterable[Smatch], resamples: int = 1000, seed: int = 0) -> CorpusSmatch:
    """Micro-average of pair results: counts are summed, then divided, as is usual for Smatch.

    Pairs that were not scored are left out and counted; what a parser's failures would cost is ``n - n_scored``.
    """
    everything = list(results)
    scored = [r for r in everything if r.counts is not None]
    counts = [r.counts for r in scored if r.counts is not None]
    low, high = _interval(counts, resamples, seed)
    names = dict.fromkeys(aspect for r in scored for aspect in r.aspects)
    return CorpusSmatch(
        _sum(counts) if counts else None,
        low,
        high,
        {name: _sum([r.aspects[name] for r in scored if name in r.aspects]) for name in names},
        len(everything),
        len(scored),
        sum(c.optimal for c in counts),
    )


def _sum(counts: Sequence[SmatchCounts]) -> SmatchCounts:
    return SmatchCounts(
        sum(c.matched for c in counts),
        sum(c.source for c in counts),
        sum(c.target for c in counts),
        sum(c.upper_bound for c in counts),
    )


def _interval(counts: Sequence[SmatchCounts], resamples: int, seed: int) -> tuple[float | None, float | None]:
    if len(counts) < 2:
        return None, None
    table = np.array([(c.matched, c.source + c.target) for c in counts], dtype=np.float64)
    random = np.random.default_rng(seed)
    picks = random.integers(len(counts), size=(resamples, len(counts)))
    sums = table[picks].sum(axis=1)
    low, high = np.percentile(2 * sums[:, 0] / sums[:, 1], (2.5, 97.5))
    return float(low), float(high)
