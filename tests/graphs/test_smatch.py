"""Smatch: equal to an independent exhaustive or plain formulation, 1 with itself, symmetric, the same on every run."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from mdialeval.graphs.penman_codec import decode, read_penman
from mdialeval.graphs.smatch import corpus_smatch, smatch
from mdialeval.graphs.smatch_solve import Limits
from mdialeval.graphs.smatch_triples import ASPECTS
from mdialeval.records import Graph

Triple = tuple[object, str, object]


def plain_triples(graph: Graph, names: dict[int, str]) -> set[Triple]:
    """The same conventions written down a second time, on strings and sets."""

    def text(label: str) -> str:
        return label.strip('"').lower()

    constants = set(graph.constants)
    found: set[Triple] = {(names[graph.top], "TOP", "top")}
    found |= {(names[i], "instance", text(c)) for i, c in enumerate(graph.concepts) if i not in constants}
    for a, role, b in graph.edges:
        if b in constants:
            found.add((names[a], role.lower(), ("value", text(graph.concepts[b]))))
        elif role == "mod":
            found.add((names[b], "domain", names[a]))
        else:
            found.add((names[a], role.lower(), names[b]))
    return found


def variables(graph: Graph) -> list[int]:
    return [i for i in range(len(graph.concepts)) if i not in graph.constants]


def exhaustive(one: Graph, other: Graph) -> int:
    """The most triples shared under any one-to-one renaming."""
    a, b = variables(one), variables(other)
    target = plain_triples(other, {j: f"v{j}" for j in b})
    spare = [f"none{i}" for i in a]
    return max(
        len(plain_triples(one, dict(zip(a, names, strict=True))) & target)
        for names in itertools.permutations([f"v{j}" for j in b] + spare[: max(0, len(a) - len(b))], len(a))
    )


def plain_programme(one: Graph, other: Graph) -> int:
    """The textbook integer programme: a binary for each pair of variables and for each pair of equal triples."""
    a, b = variables(one), variables(other)
    x = {(i, j): k for k, (i, j) in enumerate(itertools.product(a, b))}
    first = plain_triples(one, {i: i for i in range(len(one.concepts))})  # type: ignore[misc]
    second = plain_triples(other, {j: j for j in range(len(other.concepts))})  # type: ignore[misc]
    terms: list[list[int]] = []
    for (s1, r1, t1), (s2, r2, t2) in itertools.product(first, second):
        if r1 != r2 or isinstance(t1, int) != isinstance(t2, int):
            continue
        if isinstance(t1, int):
            terms.append([x[s1, s2], x[t1, t2]])  # type: ignore[index]
        elif t1 == t2:
            terms.append([x[s1, s2]])  # type: ignore[index]
    n = len(x)
    rows = np.zeros((len(a) + len(b) + 2 * len(terms), n + len(terms)))
    limit = np.zeros(len(rows))
    for (i, j), k in x.items():
        rows[a.index(i), k] = rows[len(a) + b.index(j), k] = 1
    limit[: len(a) + len(b)] = 1
    for t, needs in enumerate(terms):
        for side, k in enumerate(needs):
            rows[len(a) + len(b) + 2 * t + side, n + t] = 1
            rows[len(a) + len(b) + 2 * t + side, k] -= 1
    cost = -np.concatenate((np.zeros(n), np.ones(len(terms))))
    result = milp(
        cost, integrality=np.ones(len(cost)), bounds=Bounds(0, 1), constraints=LinearConstraint(rows, -np.inf, limit)
    )
    assert result.status == 0
    return round(-result.fun)


def shuffled(graph: Graph, seed: int, noise: float = 0.0) -> Graph:
    """The same graph under other node numbers; with noise some concepts and roles changed."""
    rng = random.Random(seed)
    order = list(range(len(graph.concepts)))
    rng.shuffle(order)
    place = {old: new for new, old in enumerate(order)}
    roles = [role for _, role, _ in graph.edges] or ["mod"]
    concepts = [graph.concepts[old] for old in order]
    constants = tuple(place[c] for c in graph.constants)
    for i, concept in enumerate(concepts):
        if rng.random() < noise and i not in constants:
            concepts[i] = rng.choice([concept + "x", rng.choice(graph.concepts).strip('"')])
    edges = [(place[a], rng.choice(roles) if rng.random() < noise else r, place[b]) for a, r, b in graph.edges]
    rng.shuffle(edges)
    return replace(graph, top=place[graph.top], concepts=tuple(concepts), edges=tuple(edges), constants=constants)


@st.composite
def small_graphs(draw: st.DrawFn) -> Graph:
    n = draw(st.integers(1, 5))
    concepts = draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=n, max_size=n))
    tree = [(draw(st.integers(0, i - 1)), draw(st.sampled_from(["ARG0", "mod"])), i) for i in range(1, n)]
    extra = draw(st.lists(st.tuples(st.integers(0, n - 1), st.just("ARG1"), st.integers(0, n - 1)), max_size=3))
    constants: tuple[int, ...] = ()
    if draw(st.booleans()):
        concepts.append("-")
        tree.append((draw(st.integers(0, n - 1)), "polarity", n))
        constants = (n,)
    return Graph("", 0, tuple(concepts), tuple(tree + extra), constants)


@settings(max_examples=150, deadline=None)
@given(small_graphs(), small_graphs())
def test_small_graphs_agree_with_exhaustive_search(one: Graph, other: Graph) -> None:
    got = smatch(one, other)
    assert got.counts is not None and got.counts.optimal
    names = {i: f"v{i}" for i in range(len(one.concepts))}
    assert got.counts.source == len(plain_triples(one, names))
    assert got.counts.matched == exhaustive(one, other)
    assert len(got.missing) == got.counts.source - got.counts.matched
    assert len(got.added) == got.counts.target - got.counts.matched
    assert smatch(other, one).f1 == got.f1
    assert 0 <= (got.f1 or 0) <= 1
    limited = smatch(one, other, limits=Limits(node_product=0)).counts
    assert limited is not None and limited.matched <= got.counts.matched <= limited.upper_bound


def real_pairs(shared_data: Path) -> Iterator[tuple[Graph, Graph]]:
    """Neighbouring sentences, and sentences against noisy copies."""
    graphs = [entry.graph for entry in read_penman(shared_data / "amr" / "lpp-v1.6-train.txt")]
    yield from itertools.pairwise(graphs[:61])
    yield from ((g, shuffled(g, i, 0.3)) for i, g in enumerate(graphs[100:160]))


def _agree(pairs: Iterator[tuple[Graph, Graph]]) -> int:
    checked = 0
    for one, other in pairs:
        if len(variables(one)) * len(variables(other)) > 700:
            continue  # the plain programme is too slow
        got = smatch(one, other)
        assert got.counts is not None and got.counts.optimal
        assert got.counts.matched == plain_programme(one, other), (one.id, other.id)
        checked += 1
    return checked


def test_real_pairs_agree_with_a_plain_programme(shared_data: Path) -> None:
    assert _agree(itertools.islice(real_pairs(shared_data), 0, 120, 4)) >= 25


@pytest.mark.slow
def test_five_hundred_real_pairs_agree_with_a_plain_programme(shared_data: Path) -> None:
    graphs = [e.graph for e in read_penman(shared_data / "amr" / "lpp-v1.6-train.txt")]
    neighbours = itertools.pairwise(graphs[:321])
    noisy = ((g, shuffled(g, i, 0.3)) for i, g in enumerate(graphs[400:720]))
    assert _agree(itertools.chain(neighbours, noisy)) >= 500


def test_a_graph_equals_itself_under_any_order(shared_data: Path) -> None:
    for i, entry in enumerate(read_penman(shared_data / "amr" / "lpp-v1.6-dev.txt")):
        got = smatch(entry.graph, shuffled(entry.graph, i))
        assert got.f1 == 1.0 and got.missing == got.added == ()


def test_two_defeats_with_four_similar_teams_score_one_on_every_run() -> None:
    text = """(a / and
        :op1 (d / defeat-01 :ARG0 (t / team :mod (c / country :name (n / name :op1 "A")))
                            :ARG1 (t2 / team :mod (c2 / country :name (n2 / name :op1 "B"))))
        :op2 (d2 / defeat-01 :ARG0 (t3 / team :mod (c3 / country :name (n3 / name :op1 "C")))
                             :ARG1 (t4 / team :mod (c4 / country :name (n4 / name :op1 "D")))))"""
    graph = decode(text)
    assert {smatch(graph, shuffled(graph, seed)).f1 for seed in range(20)} == {1.0}


@pytest.mark.parametrize("text", ["(a / a", "(w / want-01 :ARG0 (i / i)))", "(a / a) (b / b)", "()", "(a / amr-empty)"])
def test_broken_and_empty_graphs_are_never_scored(text: str) -> None:
    whole, other = decode("(b / boy)"), decode(text)
    for got in (smatch(whole, other), smatch(other, whole), smatch(other, other)):
        assert got.counts is None and got.f1 is None
        assert got.status == other.status != "ok" and "graph:" in got.reason
    assert "target" in smatch(whole, other).reason


def test_a_record_that_was_never_checked_is_checked_here() -> None:
    lost = Graph("", 0, ("a", "b"), ())
    assert smatch(lost, lost).status == "invalid"


def test_duplicate_triples_count_once_and_conventions_hold() -> None:
    assert smatch(decode('(b / boy :op1 "X" :op1 "X")'), decode("(b / Boy :op1 x)")).f1 == 1.0
    counts = smatch(decode("(b / boy :mod (t / tall))"), decode("(t / tall :domain (b / boy))")).counts
    assert counts is not None and (counts.matched, counts.source, counts.target) == (3, 4, 4)  # all but TOP


def test_aspects() -> None:
    gold = decode(
        '(w / want-01 :polarity - :ARG0 (p / person :wiki "Ann_Lee" :name (n / name :op1 "Ann"))'
        " :ARG1 (g / go-02 :ARG0 p))"
    )
    parse = decode('(w / want-02 :ARG0 (p / person :wiki - :name (n / name :op1 "Ann")) :ARG1 (g / go-02 :ARG1 p))')
    got = smatch(gold, parse, ASPECTS)
    f1 = {name: counts.f1 for name, counts in got.aspects.items()}
    assert f1["named_entities"] == 1.0
    assert f1["negation"] == 0.0 and f1["wikification"] == 0.0
    assert f1["concepts"] == pytest.approx(0.75)
    assert got.f1 is not None and got.f1 < (f1["no_senses"] or 0) and got.f1 < (f1["unlabelled"] or 0)
    assert got.aspects["srl"].source == 6 and got.aspects["srl"].matched == 4
    assert got.aspects["reentrancies"].source == 5 and got.aspects["reentrancies"].matched == 3
    none = smatch(decode("(b / boy)"), decode("(b / boy)"), ["negation"]).aspects["negation"]
    assert none.f1 is None and none.source == none.target == 0
    assert all(c.f1 == 1.0 for c in smatch(gold, shuffled(gold, 3), ASPECTS).aspects.values())


def test_missing_and_added_triples_explain_the_score() -> None:
    got = smatch(
        decode("(b / bite-01 :ARG0 (d / dog) :ARG1 (m / man))"),
        decode("(b / bite-01 :ARG0 (m / man) :ARG1 (d / dog))"),
    )
    assert set(got.missing) == {("bite-01", "arg0", "dog"), ("bite-01", "arg1", "man")}
    assert set(got.added) == {("bite-01", "arg0", "man"), ("bite-01", "arg1", "dog")}


def test_corpus_score_sums_counts_and_shows_coverage() -> None:
    whole, half = decode("(b / boy :ARG0-of (g / go-02))"), decode("(b / boy)")
    results = [smatch(whole, whole, ["concepts"]), smatch(whole, half, ["concepts"]), smatch(whole, decode("(a"))]
    got = corpus_smatch(results)
    assert got.counts is not None
    assert (got.counts.matched, got.counts.source, got.counts.target) == (6, 8, 6)
    assert got.counts.f1 == pytest.approx(12 / 14)
    assert (got.n, got.n_scored, got.n_optimal) == (3, 2, 2)
    assert got.aspects["concepts"].matched == 3
    assert got.low is not None and got.high is not None and got.low <= 12 / 14 <= got.high
    assert corpus_smatch(results) == got
    assert corpus_smatch([results[2]]).counts is None
    assert corpus_smatch([]).n == 0


def test_five_hundred_nodes_get_a_bound_in_reasonable_time(shared_data: Path) -> None:
    graphs = [entry.graph for entry in read_penman(shared_data / "amr" / "lpp-v1.6-train.txt")]
    concepts, edges, constants = ["multi-sentence"], list[tuple[int, str, int]](), list[int]()
    for k, graph in enumerate(graphs):
        offset = len(concepts)
        if offset > 500:
            break
        concepts += graph.concepts
        edges += [(0, f"snt{k}", offset + graph.top), *((a + offset, r, b + offset) for a, r, b in graph.edges)]
        constants += [c + offset for c in graph.constants]
    large = Graph("", 0, tuple(concepts), tuple(edges), tuple(constants))
    other = shuffled(large, 1, 0.2)
    got = smatch(large, other)
    assert got.counts is not None and got.f1 is not None
    assert 0.5 < got.f1 <= (got.counts.f1_upper_bound or 0) <= 1
    assert smatch(other, large).f1 == got.f1
