"""Graph faithfulness: what is lost or added is named, and a pair without two graphs has a status and no score."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from mdialeval.graphs.faithfulness import MEASURES, Faithfulness, Measure, compare
from mdialeval.graphs.penman_codec import decode, read_penman
from mdialeval.graphs.triples import triple_overlap
from mdialeval.graphs.ucca_codec import read_ucca
from mdialeval.records import Graph
from mdialeval.tables import from_table, to_table

SOURCE = decode("(b / bite-01 :ARG0 (d / dog) :ARG1 (m / man))", "s")
SWAPPED = decode("(b / bite-01 :ARG0 (m / man) :ARG1 (d / dog))", "t")
NEGATED = decode("(b / bite-01 :polarity - :ARG0 (d / dog) :ARG1 (m / man))", "t")
FAILED = Graph("t", -1, (), (), status="failed", detail="no beam")


@pytest.mark.parametrize("measure", MEASURES)
def test_every_measure_separates_meaning_changes(measure: Measure) -> None:
    assert compare(SOURCE, SOURCE, measure).f1 == 1.0
    swapped, negated = compare(SOURCE, SWAPPED, measure), compare(SOURCE, NEGATED, measure)
    assert swapped.f1 is not None and swapped.f1 < 0.8
    assert swapped.missing and swapped.added
    assert negated.recall == 1.0 and negated.precision is not None and negated.precision < 1.0
    assert negated.missing == () and any("polarity" in edge for edge in negated.added)
    assert compare(SWAPPED, SOURCE, measure).f1 == swapped.f1
    assert swapped.optimal and swapped.upper_bound == swapped.f1


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    ("source", "target", "status"),
    [
        (SOURCE, FAILED, "failed"),
        (FAILED, SOURCE, "failed"),
        (SOURCE, decode("(a / a"), "invalid"),
        (SOURCE, Graph("t", 0, ("a", "b"), ()), "invalid"),
    ],
)
def test_a_pair_without_two_graphs_has_no_score(measure: Measure, source: Graph, target: Graph, status: str) -> None:
    got = compare(source, target, measure)
    assert (got.status, got.f1, got.precision, got.recall) == (status, None, None, None)
    assert "graph:" in got.reason


def test_empty_texts() -> None:
    empty = decode("(a / amr-empty)")
    assert compare(empty, SOURCE, "usim").f1 == 0.0 and compare(empty, empty, "usim").f1 == 1.0
    for measure in ("smatch", "triples"):
        got = compare(empty, SOURCE, measure)  # type: ignore[arg-type]
        assert got.f1 is None and got.status == "empty"


@pytest.mark.parametrize("measure", MEASURES)
def test_the_order_of_and_does_not_count_but_that_of_names_does(measure: Measure) -> None:
    one, other = decode("(a / and :op1 (b / boy) :op2 (g / girl))"), decode("(a / and :op1 (g / girl) :op2 (b / boy))")
    assert compare(one, other, measure).f1 == 1.0
    name, reverse = decode('(n / name :op1 "A" :op2 "B")'), decode('(n / name :op1 "B" :op2 "A")')
    if measure != "usim":  # USim compares labels without numbers
        assert compare(name, reverse, measure).f1 != 1.0


def test_usim_compares_passages_too(shared_data: Path) -> None:
    source, target = (read_ucca(shared_data / "usim" / f"amittaic{n}.xml") for n in (1303, 1203))
    got = compare(source, target, "usim")
    assert got.f1 == pytest.approx(0.8694, abs=0.01)
    assert len(got.missing) == 236 - 208 and ":" in got.missing[0]
    with pytest.raises(TypeError, match="compared by usim"):
        compare(source, target)
    with pytest.raises(TypeError, match="not one of each"):
        compare(source, SOURCE, "usim")


def test_an_unknown_measure_is_named() -> None:
    with pytest.raises(ValueError, match="one of smatch, usim, triples"):
        compare(SOURCE, SOURCE, "bleu")  # type: ignore[arg-type]


def test_results_are_rows_of_a_table() -> None:
    rows = [compare(SOURCE, SWAPPED), compare(SOURCE, FAILED)]
    assert from_table(to_table(rows, Faithfulness), Faithfulness) == rows


def test_triples_are_a_multiset() -> None:
    twice = Graph("", 0, ("and", "boy", "boy"), ((0, "op", 1), (0, "op", 2)))
    once = Graph("", 0, ("and", "boy"), ((0, "op", 1),))
    got = triple_overlap(twice, once)
    assert (got.counts.matched, got.counts.source, got.counts.target) == (2, 3, 2)
    assert got.missing == (("and", "op", "boy"),)


@pytest.mark.parametrize("measure", ["usim", "triples"])
def test_five_hundred_nodes_are_compared_in_seconds(measure: Measure, shared_data: Path) -> None:
    concepts, edges = ["multi-sentence"], list[tuple[int, str, int]]()
    for k, entry in enumerate(read_penman(shared_data / "amr" / "lpp-v1.6-train.txt")):
        offset = len(concepts)
        if offset > 500:
            break
        graph = entry.graph
        concepts += graph.concepts
        edges += [(0, f"snt{k}", offset + graph.top), *((a + offset, r, b + offset) for a, r, b in graph.edges)]
    large = Graph("", 0, tuple(concepts), tuple(edges))
    changed = Graph("", 0, tuple(c if i % 5 else "thing" for i, c in enumerate(concepts)), tuple(edges))
    started = time.process_time()
    assert compare(large, large, measure).f1 == pytest.approx(1.0)
    got = compare(large, changed, measure)
    assert time.process_time() - started < 30
    assert got.f1 is not None and 0.3 < got.f1 < 1.0
    assert got.missing and got.added


@pytest.mark.parametrize("measure", MEASURES)
def test_a_score_on_graphs_that_lack_something_says_so(measure: Measure) -> None:
    cut = replace(SOURCE, status="truncated", detail="3 of 63 sentences left out")
    bag = replace(SOURCE, detail="no rule fits (KeyError): content words alone")
    assert compare(cut, SOURCE, measure).reason == "source graph: 3 of 63 sentences left out"
    got = compare(SOURCE, bag, measure)
    assert (got.status, got.f1) == ("ok", 1.0)
    assert got.reason == "target graph: no rule fits (KeyError): content words alone"
    assert compare(SOURCE, SOURCE, measure).reason == ""


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("(b / bite-01 :ARG0 (d / dog)", "add it, unless the graph was cut off"),
        ("(b / bite-01)\n(d / dog)", "put a blank line between graphs"),
        ("(b / bite-01 :ARG0 (b / dog))", "rename one"),
        ("(b / bite-01 :ARG0 d)", "write (d / concept) once"),
    ],
)
def test_broken_graphs_name_the_side_the_line_and_the_fix(measure: Measure, text: str, fix: str) -> None:
    got = compare(SOURCE, decode(text), measure)
    assert (got.status, got.f1) == ("invalid", None)
    assert got.reason.startswith("target graph: line ") or "twice" in got.reason or "not defined" in got.reason
    assert fix in got.reason
