"""The PENMAN codec and the validator: what is broken is named, what is whole survives the way there and back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdialeval.errors import DataError
from mdialeval.graphs.penman_codec import decode, encode, read_penman, write_penman
from mdialeval.graphs.validate import MAX_DEPTH, graph_problem, validated
from mdialeval.records import Graph


def labelled(graph: Graph) -> Counter[tuple[str, str, str]]:
    return Counter((graph.concepts[a], role, graph.concepts[b]) for a, role, b in graph.edges)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(a / a", "1 bracket is not closed"),
        ("(a / and\n :op1 (b / b\n :mod (c / c)", "2 brackets are not closed"),
        ("(w / want-01 :ARG0 (i / i)))", "a closing bracket too many"),
        ("(a / a) (b / b)", "a second root"),
        ("(a / a) b", "text outside the brackets"),
        ("nothing", "text outside the brackets"),
        ("(w / want-01 :ARG0 b)", "variable 'b' is not defined"),
        ("(w / want-01 :ARG0 x12)", "variable 'x12' is not defined"),
        ("(a / a :ARG0 (a / b))", "variable 'a' is defined twice"),
        ("()", "without variable"),
        ("(a)", "has no concept"),
        ("(a / )", "has no concept"),
        ("(a / b :ARG0)", "has no value"),
        ("(a / b : c1)", "has no role"),
        ('(a / b :op1 "x)', "quotation mark is not closed"),
        ("(a / b :ARG0-of 5)", "a constant has no roles"),
        ("", "no graph"),
        ("(a / a :mod " * (MAX_DEPTH + 5) + "1" + ")" * (MAX_DEPTH + 5), "nested deeper"),
    ],
)
def test_broken_text_is_invalid_with_its_reason(text: str, reason: str) -> None:
    graph = decode(text, "t1")
    assert graph.status == "invalid"
    assert reason in graph.detail
    assert graph.concepts == () and graph.id == "t1"


def test_roles_are_forward_and_constants_are_nodes() -> None:
    graph = decode('(b / boy :ARG0-of (s / sing-01 :polarity -) :consist-of (c / clay) :name (n / name :op1 "Al:(x)"))')
    assert labelled(graph) == Counter(
        {
            ("sing-01", "ARG0", "boy"): 1,
            ("sing-01", "polarity", "-"): 1,
            ("boy", "consist-of", "clay"): 1,
            ("boy", "name", "name"): 1,
            ("name", "op1", '"Al:(x)"'): 1,
        }
    )
    assert [graph.concepts[i] for i in graph.constants] == ["-", '"Al:(x)"']


def test_alignments_and_duplicate_edges_are_dropped() -> None:
    graph = decode("(w / want-01~e.1 :ARG0~e.2 (b / boy~e.3) :ARG0 b)")
    assert graph.concepts == ("want-01", "boy")
    assert graph.edges == ((0, "ARG0", 1),)


def test_list_items_may_look_like_variables() -> None:
    assert decode("(a / and :li a :op1 (b / boy))").status == "ok"


def test_cycles_and_late_definitions_are_fine() -> None:
    assert decode("(a / and :op1 b :op2 (b / boy :ARG0-of (s / see-01 :ARG1 b)))").status == "ok"


def test_the_empty_graph_has_the_status_empty() -> None:
    assert decode("(a / amr-empty)").status == "empty"


@given(st.text(alphabet='()/:"~ abx12-#\n', max_size=40))
def test_decoding_is_total_and_what_it_accepts_is_valid(text: str) -> None:
    graph = decode(text)
    assert graph.status in ("ok", "invalid", "empty")
    assert (graph.status == "invalid") == bool(graph.detail and graph.status != "empty")
    if graph.status == "ok":
        assert graph_problem(graph) == ""
        assert labelled(decode(encode(graph))) == labelled(graph)


def test_a_graph_record_is_checked_too() -> None:
    assert "does not exist" in graph_problem(Graph("", 0, ("a",), ((0, "mod", 1),)))
    assert "not one of the 1 nodes" in graph_problem(Graph("", 3, ("a",), ()))
    assert "no nodes" in graph_problem(Graph("", -1, (), ()))
    assert "limit is 2" in graph_problem(Graph("", 0, ("a", "b", "c"), ((0, "x", 1), (1, "x", 2))), max_nodes=2)
    assert "has an edge of its own" in graph_problem(Graph("", 0, ("a", "7"), ((0, "x", 1), (1, "y", 0)), (1,)))
    lost = validated(Graph("g", 0, ("a", "b"), ()))
    assert lost.status == "invalid" and "not connected" in lost.detail
    failed = Graph("g", -1, (), (), status="failed", detail="kept")
    assert validated(failed) is failed


def test_odd_concepts_survive_the_way_there_and_back() -> None:
    graph = Graph("", 0, ('it\'s (odd): "x" ~e.1', "a/b", '"Q"'), ((0, "mod", 1), (1, "op1", 2)), (2,))
    assert decode(encode(graph)).concepts == graph.concepts


def test_a_file_with_broken_entries_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "graphs.txt"
    path.write_text(
        "# AMR release, a header without a graph\n\n"
        "# ::id a ::date today\n# ::snt One :: two\n(a / and\n  :op1 (b / boy))\n\n"
        "# ::id b\n# ::snt Broken\n(c / cat\n  :mod (d / dog)\n\n"
        "# ::id c\n# ::snt Missing\n\n"
        "# ::id d\n\n(e / eat-01)\n(f / two)\n",
        encoding="utf-8-sig",
    )
    entries = list(read_penman(path))
    assert [e.graph.id for e in entries] == ["a", "b", "c", "d"]
    assert [e.graph.status for e in entries] == ["ok", "invalid", "failed", "invalid"]
    assert entries[0].sentence == "One :: two" and entries[0].metadata["date"] == "today"
    assert entries[1].graph.detail == f"{path}:10: 1 bracket is not closed: add it, unless the graph was cut off"
    assert entries[2].graph.detail == f"{path}:13: no graph under this ::id"
    assert "second root" in entries[3].graph.detail


def test_files_that_cannot_be_read_say_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        list(read_penman(tmp_path / "absent.txt"))
    (tmp_path / "latin.txt").write_bytes(b"(a / a)\n\n(b / caf\xe9)")
    with pytest.raises(DataError, match=r"latin\.txt:3: not UTF-8"):
        list(read_penman(tmp_path / "latin.txt"))
    (tmp_path / "none.txt").write_text("# only a comment\n")
    with pytest.raises(DataError, match="no graph in the file"):
        list(read_penman(tmp_path / "none.txt"))


def test_writing_keeps_status_and_sentence(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    graphs = [
        decode("(g / go-02 :ARG0 (b / boy))", "1"),
        Graph("2", -1, (), (), status="failed", detail="no beam"),
        decode("(a / amr-empty)", "3"),
    ]
    assert write_penman(path, [(g, "text\nof two lines") for g in graphs]) == 3
    back = list(read_penman(path))
    assert [e.graph.status for e in back] == ["ok", "failed", "empty"]
    assert back[0].graph == graphs[0]
    assert {e.sentence for e in back} == {"text of two lines"}


def test_gold_amr_survives_the_way_there_and_back(shared_data: Path) -> None:
    entries = list(read_penman(shared_data / "amr" / "lpp-v1.6-train.txt"))
    assert len(entries) == 1274
    assert {e.graph.status for e in entries} == {"ok"}
    for entry in entries[::3]:
        again = decode(encode(entry.graph))
        assert labelled(again) == labelled(entry.graph)
        assert len(again.concepts) == len(entry.graph.concepts)
        assert sorted(again.concepts[i] for i in again.constants) == sorted(
            entry.graph.concepts[i] for i in entry.graph.constants
        )
