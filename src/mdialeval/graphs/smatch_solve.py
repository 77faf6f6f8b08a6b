"""The best one-to-one map between the variables of two graphs: exactly where it can be proved, else the best found.

The problem is a quadratic assignment with few terms.  In turn: identical graphs; an assignment bound with a local
search that often meets it; a mixed-integer programme (HiGHS) that only has to look for something better than the
local search; and, above the limits, seeded restarts with the assignment bound as the upper bound.  Nothing here
depends on time unless the time limit is reached, so results are the same on every run.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, LinearConstraint, linear_sum_assignment, milp
from scipy.sparse import coo_matrix

from mdialeval.graphs.smatch_triples import Triples

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_EPSILON = 1e-6


class Limits(NamedTuple):
    """When to stop looking for a proof.

    Attributes:
        node_product: variables of one side times those of the other, above which only restarts are tried.
        terms: pairs of edges with one role, above which only restarts are tried.
        branches: nodes of the branch-and-bound tree.
        seconds: wall time of one mixed-integer programme; the one limit that depends on the machine.
        restarts: random starts of the local search where there is no proof.
    """

    node_product: int = 40_000
    terms: int = 20_000
    branches: int = 2_000
    seconds: float = 10.0
    restarts: int = 3


class Solution(NamedTuple):
    """A map and what it is worth.

    Attributes:
        mapping: for each variable of the first side its partner in the second, or -1.
        matched: triples that match under it.
        upper_bound: no map matches more.
    """

    mapping: tuple[int, ...]
    matched: int
    upper_bound: int


@dataclass(frozen=True, slots=True)
class _Problem:
    """Maximise sum unary[i, m(i)] + number of terms t with m(a[t]) = b[t] and m(c[t]) = d[t].

    Attributes:
        unary: (N, M) concepts and attributes that match.
        edges: (T, 2) index of the first side's and of the second side's edge of each term.
        a, b, c, d: (T,) each term's pairs (a, b) of edge sources and (c, d) of edge targets.
        bound: (N, M) unary plus half of the most edges that could match at that pair.
    """

    unary: Floats
    edges: Ints
    a: Ints
    b: Ints
    c: Ints
    d: Ints
    bound: Floats


def solve(first: Triples, second: Triples, limits: Limits) -> Solution:
    """The best map from ``first`` to ``second``."""
    n, m = len(first.concepts), len(second.concepts)
    if (first.concepts, first.attributes, first.relations) == (second.concepts, second.attributes, second.relations):
        return Solution(tuple(range(n)), len(first), len(first))
    if n == 0 or m == 0:
        return Solution((-1,) * n, 0, 0)
    problem = _problem(first, second)
    rows, columns = linear_sum_assignment(problem.bound, maximize=True)
    upper = math.floor(float(problem.bound[rows, columns].sum()) + _EPSILON)
    best, value = _climb(problem, _mapping(rows, columns, n), upper)
    if value < upper:
        best, value = _better((best, value), _climb(problem, _concept_start(problem), upper))
    if value < upper and n * m <= limits.node_product and len(problem.a) <= limits.terms:
        best, value, upper = _prove(problem, best, value, upper, limits)
    if value < upper:
        best, value = _restarted(problem, best, value, upper, limits.restarts)
    mapping = [int(j) if problem.unary[i, j] or _is_used(problem, best, i) else -1 for i, j in enumerate(best)]
    return Solution(tuple(mapping), value, upper)


def _is_used(problem: _Problem, mapping: Ints, node: int) -> bool:
    """Whether a term holds at a node; a pair that matches nothing is not reported."""
    holds = (mapping[problem.a] == problem.b) & (mapping[problem.c] == problem.d)
    return bool((holds & ((problem.a == node) | (problem.c == node))).any())


def _problem(first: Triples, second: Triples) -> _Problem:
    n, m = len(first.concepts), len(second.concepts)
    unary = np.zeros((n, m))
    at: dict[str, list[int]] = defaultdict(list)
    for j, concept in enumerate(second.concepts):
        if concept is not None:
            at[concept].append(j)
    for i, concept in enumerate(first.concepts):
        if concept in at:
            unary[i, at[concept]] += 1
    having: dict[tuple[str, str], list[int]] = defaultdict(list)
    for j, role, value in second.attributes:
        having[role, value].append(j)
    for i, role, value in first.attributes:
        if (role, value) in having:
            unary[i, having[role, value]] += 1
    by_role: dict[str, list[int]] = defaultdict(list)
    for index, (_, role, _) in enumerate(second.relations):
        by_role[role].append(index)
    found: list[tuple[int, int, int, int, int, int]] = []
    for e, (a, role, c) in enumerate(first.relations):
        for f in by_role.get(role, ()):
            b, _, d = second.relations[f]
            if a == c and b == d:
                unary[a, b] += 1  # a loop depends on one pair alone
            elif a != c and b != d:
                found.append((e, f, a, b, c, d))
    table = np.array(found, dtype=np.int64).reshape(-1, 6)
    e, f, a, b, c, d = table.T
    half = _incident(first, second)
    return _Problem(unary, table[:, :2], a, b, c, d, unary + half / 2)


def _incident(first: Triples, second: Triples) -> Floats:
    """(N, M) how many edges of one node could match edges of the other by role and direction alone."""
    roles = sorted({r for _, r, _ in first.relations} & {r for _, r, _ in second.relations})
    index = {role: i for i, role in enumerate(roles)}
    counts = []
    for side in (first, second):
        table = np.zeros((len(side.concepts), 2 * len(roles)))
        for source, role, target in side.relations:
            if role in index and source != target:
                table[source, 2 * index[role]] += 1
                table[target, 2 * index[role] + 1] += 1
        counts.append(table)
    found: Floats = np.minimum(counts[0][:, None, :], counts[1][None, :, :]).sum(axis=2)
    return found


def _mapping(rows: Ints, columns: Ints, n: int) -> Ints:
    mapping = np.full(n, -1, dtype=np.int64)
    mapping[rows] = columns
    return mapping


def _concept_start(problem: _Problem) -> Ints:
    """Equal concepts first, ties by what surrounds them."""
    return _rounded(problem.unary + problem.bound * 0.1)


def _value(problem: _Problem, mapping: Ints) -> int:
    mapped = np.flatnonzero(mapping >= 0)
    terms = (mapping[problem.a] == problem.b) & (mapping[problem.c] == problem.d)
    return round(float(problem.unary[mapped, mapping[mapped]].sum())) + int(terms.sum())


def _better(one: tuple[Ints, int], other: tuple[Ints, int]) -> tuple[Ints, int]:
    return other if other[1] > one[1] else one


def _gains(problem: _Problem, mapping: Ints) -> Floats:
    """(N, M) what the pair (i, j) is worth beside the other pairs of the map."""
    gains = problem.unary.copy()
    source, target = mapping[problem.a] == problem.b, mapping[problem.c] == problem.d
    np.add.at(gains, (problem.a[target], problem.b[target]), 1)
    np.add.at(gains, (problem.c[source], problem.d[source]), 1)
    return gains


def _climb(problem: _Problem, start: Ints, upper: int) -> tuple[Ints, int]:
    """Local search: repeated assignment on the gains, then best single moves and swaps until nothing improves.

    It stops at ``upper``, since nothing is better.
    """
    n, m = problem.unary.shape
    mapping, value = start, _value(problem, start)
    while value < upper:
        candidate = _rounded(_gains(problem, mapping))
        gained = _value(problem, candidate)
        if gained <= value:
            break
        mapping, value = candidate, gained
    mapping = mapping.copy()
    while value < upper:
        gains = _gains(problem, mapping)
        current = np.where(mapping >= 0, gains[np.arange(n), mapping], 0.0)
        is_free = np.ones(m, dtype=bool)
        is_free[mapping[mapping >= 0]] = False
        free = np.flatnonzero(is_free)
        move, swap = -1.0, -1.0
        if free.size:
            deltas = gains[:, free] - current[:, None]
            at_move = int(deltas.argmax())
            move = float(deltas.flat[at_move])
        if n > 1:
            deltas = _swaps(problem, mapping, gains, current)
            at_swap = int(deltas.argmax())
            swap = float(deltas.flat[at_swap])
        if max(move, swap) < 0.5:
            break
        value += round(max(move, swap))
        if move >= swap:
            mapping[at_move // free.size] = free[at_move % free.size]
        else:
            i, k = divmod(at_swap, n)
            mapping[i], mapping[k] = mapping[k], mapping[i]
    return mapping, value


def _swaps(problem: _Problem, mapping: Ints, gains: Floats, current: Floats) -> Floats:
    """(N, N) what exchanging the partners of two variables gains; terms between the two are counted once."""
    n = len(mapping)
    taken = np.where(mapping >= 0, gains[:, mapping], 0.0)  # (N, N) worth of i with k's partner
    both = np.zeros((n, n))
    kept = (mapping[problem.a] == problem.b) & (mapping[problem.c] == problem.d)
    crossed = (mapping[problem.a] == problem.d) & (mapping[problem.c] == problem.b)
    for mask in (kept, crossed):
        np.add.at(both, (problem.a[mask], problem.c[mask]), 1)
    deltas: Floats = taken + taken.T - current[:, None] - current[None, :] + both + both.T
    np.fill_diagonal(deltas, -1.0)
    return deltas


def _prove(problem: _Problem, best: Ints, value: int, upper: int, limits: Limits) -> tuple[Ints, int, int]:
    """The linear relaxation, whose bound is mostly tight and whose solution mostly rounds to an optimum; then HiGHS.

    HiGHS is only asked for a map worth more than ``value``: none means that ``value`` is optimal.
    """
    n, m = problem.unary.shape
    pairs = np.flatnonzero(problem.bound > 0)
    column = np.full(n * m, -1, dtype=np.int64)
    column[pairs] = np.arange(len(pairs))
    weights = np.concatenate((problem.unary.flat[pairs], np.ones(len(problem.a))))
    matrix, limit = _constraints(problem, pairs, column)
    needs = LinearConstraint(matrix, -np.inf, limit)
    relaxed = milp(-weights, bounds=Bounds(0, 1), constraints=[needs], options={"time_limit": limits.seconds})
    if relaxed.status != 0:
        return best, value, upper
    upper = min(upper, math.floor(-relaxed.fun + _EPSILON))
    shares = np.zeros(n * m)
    shares[pairs] = relaxed.x[: len(pairs)]
    shares = shares.reshape(n, m)
    best, value = _better((best, value), _climb(problem, _rounded(shares + 1e-3 * problem.bound), upper))
    if value < upper:
        best, value = _restarted(problem, best, value, upper, limits.restarts, shares)
    if value == upper:
        return best, value, upper
    result = milp(
        -weights,
        integrality=np.concatenate((np.ones(len(pairs)), np.zeros(len(problem.a)))),
        bounds=Bounds(0, 1),
        constraints=[needs, LinearConstraint(weights[None, :], value + 1 - _EPSILON, np.inf)],
        options={"node_limit": limits.branches, "time_limit": limits.seconds, "mip_rel_gap": 0.0},
    )
    if result.status == 2:  # infeasible: nothing better exists
        return best, value, value
    if result.status == 0:
        chosen = pairs[result.x[: len(pairs)] > 0.5]
        mapping = _mapping(chosen // m, chosen % m, n)
        exact = _value(problem, mapping)
        return mapping, exact, exact
    return best, value, upper


def _rounded(worth: Floats) -> Ints:
    """The assignment of greatest worth."""
    rows, columns = linear_sum_assignment(worth, maximize=True)
    return _mapping(rows, columns, len(worth))


def _constraints(problem: _Problem, pairs: Ints, column: Ints) -> tuple[coo_matrix, Floats]:
    """Each variable has one partner; a term needs both of its pairs, and an edge matches one edge at most.

    For an edge and a pair at one of its ends, all terms of that edge with that pair together are at most the pair:
    tighter than one row a term, with fewer rows.
    """
    n, m = problem.unary.shape
    count, terms = len(pairs), np.arange(len(problem.a))
    rows = [pairs // m, n + pairs % m]
    columns = [np.arange(count), np.arange(count)]
    values = [np.ones(count), np.ones(count)]
    limit = [np.ones(n + m)]
    height = n + m
    for edge in (problem.edges[:, 0], problem.edges[:, 1]):
        for pair in (problem.a * m + problem.b, problem.c * m + problem.d):
            _, first, group = np.unique(edge * (n * m) + pair, return_index=True, return_inverse=True)
            rows += [height + group, height + np.arange(len(first))]
            columns += [count + terms, column[pair[first]]]
            values += [np.ones(len(terms)), -np.ones(len(first))]
            limit.append(np.zeros(len(first)))
            height += len(first)
    shape = (height, count + len(terms))
    matrix = coo_matrix((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=shape)
    return matrix, np.concatenate(limit)


def _restarted(
    problem: _Problem, best: Ints, value: int, upper: int, restarts: int, worth: Floats | None = None
) -> tuple[Ints, int]:
    """More local searches, from assignments on the bound (or another worth of pairs) with seeded noise."""
    random = np.random.default_rng(0)
    base = problem.bound if worth is None else worth
    for _ in range(restarts):
        noise = random.random(base.shape) * (1 + problem.bound if worth is None else worth + 0.1)
        best, value = _better((best, value), _climb(problem, _rounded(base + noise), upper))
        if value == upper:
            break
    return best, value
