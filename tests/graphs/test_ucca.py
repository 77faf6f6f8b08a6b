"""The UCCA reader: what is in a file, and what is said about broken ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from mdialeval.errors import DataError
from mdialeval.graphs.ucca_codec import glued_tokens, read_ucca, to_graph, yields
from mdialeval.graphs.usim import usim
from mdialeval.graphs.usim_view import from_passage, sentence_ends
from mdialeval.graphs.validate import graph_problem


def node(id: str, kind: str, edges: str = "", attributes: str = "") -> str:
    return f'<node ID="{id}" type="{kind}"><attributes {attributes}/>{edges}</node>'


def edge(target: str, category: str, remote: bool = False) -> str:
    mark = 'remote="True"' if remote else ""
    return f'<edge toID="{target}" type="{category}"><attributes {mark}/></edge>'


def passage(words: list[tuple[str, str]], units: str) -> str:
    terminals = "".join(
        node(f"0.{i}", "Punctuation" if text in ".!?" else "Word", "", f'paragraph="{paragraph}" text="{text}"')
        for i, (text, paragraph) in enumerate(words, 1)
    )
    return (
        '<root annotationID="0" passageID="7"><attributes />'
        f'<layer layerID="0"><attributes />{terminals}</layer><layer layerID="1"><attributes />{units}</layer></root>'
    )


WORDS = [("Ann", "1"), ("came", "1"), (".", "1"), ("She", "1"), ("slept", "1"), ("!", "1")]
UNITS = (
    node("1.1", "FN", edge("1.2", "H") + edge("1.5", "U") + edge("1.6", "H") + edge("1.9", "U"))
    + node("1.2", "FN", edge("1.3", "A") + edge("1.4", "P"))
    + node("1.3", "FN", edge("0.1", "Terminal"))
    + node("1.4", "FN", edge("0.2", "Terminal"))
    + node("1.5", "PNCT", edge("0.3", "Terminal"))
    + node("1.6", "FN", edge("1.7", "A") + edge("1.8", "P") + edge("1.3", "A", remote=True))
    + node("1.7", "FN", edge("0.4", "Terminal"))
    + node("1.8", "FN", edge("0.5", "Terminal"))
    + node("1.9", "PNCT", edge("0.6", "Terminal"))
)


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "p.xml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_small_passage(tmp_path: Path) -> None:
    got = read_ucca(write(tmp_path, passage(WORDS, UNITS)))
    assert (got.id, got.status, got.root, got.text()) == ("7", "ok", 0, "Ann came . She slept !")
    assert yields(got)[5] == {3, 4}  # the remote participant does not extend it
    assert sentence_ends(got) == (2, 5)
    view = from_passage(got)
    assert view.names == ("Ann came", "She slept") and view.primary == ("H", "H")
    assert from_passage(got, all_units=True).names == ("Ann came", "Ann", "came", "She slept", "She", "slept")
    assert usim(got, got).f1 == 1.0
    graph = to_graph(got)
    assert graph_problem(graph) == ""
    assert (5, "A*", 2) in graph.edges
    assert [graph.concepts[i] for i in graph.constants] == [text for text, _ in WORDS]


def test_a_passage_of_single_words_has_nothing_to_compare(tmp_path: Path) -> None:
    one = read_ucca(write(tmp_path, passage([("Hi", "1")], node("1.1", "FN", edge("0.1", "Terminal")))))
    got = usim(one, one)
    assert got.f1 is None and got.status == "no_units"


@pytest.mark.parametrize(
    ("units", "reason"),
    [
        (UNITS + node("1.10", "FN"), "several roots: 1.1, 1.10"),
        (UNITS.replace(edge("0.5", "Terminal"), ""), "word 5 ('slept') belongs to no unit"),
        (UNITS.replace(edge("1.3", "A", remote=True), edge("1.3", "A")), "unit 1.3 has two primary parents"),
        (node("1.1", "FN", edge("1.2", "H")) + node("1.2", "FN", edge("1.1", "H")), "no root"),
        ("", "no units"),
    ],
)
def test_broken_structure_is_invalid_with_file_and_reason(tmp_path: Path, units: str, reason: str) -> None:
    path = write(tmp_path, passage(WORDS, units))
    got = read_ucca(path)
    assert got.status == "invalid"
    assert got.detail.startswith(str(path)) and reason in got.detail
    assert usim(got, got).f1 is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<root><layer>", r"p\.xml:1: not well-formed XML"),
        ("<html></html>", "not UCCA standard XML"),
        (passage(WORDS, UNITS.replace("0.5", "0.99")), "edge to '0.99', which does not exist"),
        (passage(WORDS, UNITS.replace('type="PNCT"', 'type="X"')), "has the type 'X'"),
        (passage(WORDS, UNITS).replace('text="came"', ""), "terminal 0.2 has no text"),
        (passage(WORDS, UNITS).replace('paragraph="1"', 'paragraph="one"', 1), "'one' is not a number"),
        (passage(WORDS, UNITS.replace('type="H"', 'type=""')), "has no category"),
    ],
)
def test_files_that_are_not_ucca_name_the_fault(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_ucca(write(tmp_path, text))


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_ucca(tmp_path / "absent.xml")


def test_an_empty_passage_has_the_status_empty(tmp_path: Path) -> None:
    got = read_ucca(write(tmp_path, passage([], "")))
    assert got.status == "empty"
    assert usim(got, got).f1 == 1.0


def test_glued_punctuation_is_counted(shared_data: Path) -> None:
    assert glued_tokens(read_ucca(shared_data / "usim" / "amittaic1197.xml")) == 0
    assert glued_tokens(read_ucca(shared_data / "usim" / "amittaic1297.xml")) == 19
    assert len(sentence_ends(read_ucca(shared_data / "usim" / "amittaic1197.xml"))) == 20


def test_every_annotation_is_read(shared_data: Path) -> None:
    passages = [read_ucca(path) for path in sorted((shared_data / "usim").glob("*.xml"))]
    assert len(passages) == 26
    assert {p.status for p in passages} == {"ok"}
    assert sum(u.kind == "FN" for p in passages for u in p.units) == 17_647
    assert sum(e.remote for p in passages for e in p.edges) == 467
    assert sum(u.implicit for p in passages for u in p.units) == 18
    assert all(graph_problem(to_graph(p)) == "" for p in passages)
