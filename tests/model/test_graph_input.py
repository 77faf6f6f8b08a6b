"""From graphs to tensors: the closed vocabulary, the joined dialogue graph, limits, and ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from mdialeval.graphs.penman_codec import decode
from mdialeval.graphs.turns import PairGraphs, graphs_of
from mdialeval.model.encoder import load_base
from mdialeval.model.graph_input import (
    CONTEXT,
    MAX_CONTEXT,
    MAX_RESPONSE,
    RESPONSE,
    GraphRow,
    Join,
    collate_graphs,
    encode_graphs,
)
from mdialeval.model.graph_relations import FAR, N_RELATIONS, NONE, PAD, ROLES, SELF, relation
from mdialeval.records import Example, Graph, TrainingPair, Turn

TEA = decode("(w / want-01 :ARG0 (y / you) :ARG1 (t / tea :mod (g / green-02)) :polarity (a / amr-unknown))", "e#0")
NO = decode("(n / no)", "e#1")
DRINK = decode("(d / drink-01 :ARG0 (i / i) :ARG1 (t / tea) :time (d2 / date-entity :weekday (m / monday)))", "e#2")


def chain(n: int, word: str = "thing") -> Graph:
    """A path of n nodes."""
    return Graph("", 0, tuple(f"{word}{i}" for i in range(n)), tuple((i, "mod", i + 1) for i in range(n - 1)))


def rows_of(encoder: Path, *pairs: PairGraphs, join: Join = "joint") -> list[GraphRow]:
    return encode_graphs(load_base(str(encoder))[1], pairs, join)


def test_relations_are_few_and_fit_a_byte() -> None:
    assert len(set(ROLES)) == len(ROLES)
    assert 50 <= len(ROLES) <= 64
    assert {relation(role) for role in ROLES} == set(range(FAR + 1, N_RELATIONS, 2))
    assert N_RELATIONS <= 256
    assert relation("never-seen-role") == relation("other")
    assert relation("year") == relation("month") == relation("date")


def test_joint_graph_has_root_turns_tops_and_same_edges(tiny_encoder: Path) -> None:
    (row,) = rows_of(tiny_encoder, PairGraphs((TEA, NO), DRINK))
    assert row.n_turns == row.n_graphs == 3
    assert row.segment == (0, *[CONTEXT] * 8, *[RESPONSE] * 6)
    assert row.turn == (0, *[2] * 6, *[1] * 2, *[0] * 6)
    named = {r: [(a, b) for a, b, k in row.edges if k == relation(r)] for r in ("turn", "top", "same")}
    assert named["turn"] == [(0, 1), (0, 7), (0, 9)]
    assert named["top"] == [(1, 2), (7, 8), (9, 10)]
    assert len(named["same"]) == 1  # tea; the pronouns are not content
    (a, b) = named["same"][0]
    assert (row.segment[a], row.segment[b]) == (RESPONSE, CONTEXT)
    assert row.pieces[a] == row.pieces[b]


def test_relations_of_pairs(tiny_encoder: Path) -> None:
    (row,) = rows_of(tiny_encoder, PairGraphs((), chain(7)))
    batch = collate_graphs([row], pad=1)
    matrix, n = batch.relations[0], len(row.segment)
    assert matrix.dtype.itemsize == 1
    assert batch.mask[0].sum() == n == 9  # root, turn, seven nodes
    assert matrix[2, 3] == relation("mod")
    assert matrix[3, 2] == relation("mod") + 1
    assert [int(matrix[2, i]) for i in (2, 4, 5, 6, 7, 8)] == [SELF, 3, 4, 5, FAR, FAR]
    assert set(matrix[:n, n:].flatten().tolist()) == {PAD}
    assert matrix.diagonal().tolist() == [SELF] * matrix.shape[0]


def test_separate_sides_do_not_see_each_other(tiny_encoder: Path) -> None:
    (row,) = rows_of(tiny_encoder, PairGraphs((TEA, NO), DRINK), join="separate")
    matrix = collate_graphs([row], pad=1).relations[0]
    first = row.segment.index(RESPONSE)
    assert set(matrix[:first, first : len(row.segment)].flatten().tolist()) == {NONE}
    assert set(matrix[first : len(row.segment), :first].flatten().tolist()) == {NONE}
    assert NONE not in matrix[:first, :first]
    assert relation("same") not in [k for *_, k in row.edges]


def test_oldest_turns_are_dropped_and_counted(tiny_encoder: Path) -> None:
    (row,) = rows_of(tiny_encoder, PairGraphs((chain(60, "a"), chain(60, "b"), chain(60, "c")), NO))
    assert row.n_turns_dropped == 1
    assert not row.cut
    assert row.segment.count(CONTEXT) == 122 <= MAX_CONTEXT
    assert set(row.turn) == {0, 1, 2}
    assert row.n_graphs == 3
    assert row.n_turns == 4


def test_a_turn_of_500_nodes_is_cut_near_its_top(tiny_encoder: Path) -> None:
    (row,) = rows_of(tiny_encoder, PairGraphs((chain(500),), chain(500)))
    assert row.cut
    assert row.segment.count(CONTEXT) == MAX_CONTEXT
    assert row.segment.count(RESPONSE) == MAX_RESPONSE
    assert row.n_turns_dropped == 0
    assert len(row.edges) == 2 * 1 + (MAX_CONTEXT - 1) + (MAX_RESPONSE - 1) + 63  # turn edges, chains, equal concepts


@pytest.mark.parametrize("status", ["failed", "empty", "invalid"])
def test_unusable_graphs_are_no_graphs(tiny_encoder: Path, status: str) -> None:
    broken = Graph("", 0, ("a",), (), (), status)  # type: ignore[arg-type]
    (row, none) = rows_of(tiny_encoder, PairGraphs((broken,), broken), PairGraphs((None,), None))
    assert not row.has_graph
    assert row == none
    assert (row.n_graphs, row.n_turns) == (0, 2)


def test_odd_labels_have_sub_words(tiny_encoder: Path) -> None:
    odd = Graph("", 0, ("😂", "-", "", " ", "x" * 300), ((0, "mod", 1), (0, "mod", 2), (0, "mod", 3), (0, "mod", 4)))
    (row,) = rows_of(tiny_encoder, PairGraphs((), odd))
    assert all(1 <= len(pieces) <= 8 for pieces in row.pieces)


def test_ids_of_examples_translations_and_dialogue_turns() -> None:
    graphs = {g.id: g for g in (TEA, NO, DRINK)}
    turns, response = (Turn("?"), Turn("No.")), Turn("I drink tea on Monday.")
    whole = PairGraphs((TEA, NO), DRINK)
    assert graphs_of(Example("e", "en", turns, response), graphs) == whole
    assert graphs_of(Example("e-de", "de", turns, response, source_id="e"), graphs) == whole
    assert graphs_of(Example("e#2", "pt", turns, response, source_id="e#2"), graphs) == whole
    assert graphs_of(TrainingPair("e#1", "en", turns[:1], response, 1.0, "true_next", "e"), graphs) == ((TEA,), NO)
    assert graphs_of(Example("other", "en", turns, response), graphs) == PairGraphs((None, None), None)
