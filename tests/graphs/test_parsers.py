"""The contract of every parser that needs no model, and the given parser's alignment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mdialeval.errors import ConfigError, DataError
from mdialeval.graphs.given import GivenParser
from mdialeval.graphs.protocol import PARSERS, GraphParser
from mdialeval.graphs.validate import graph_problem
from mdialeval.registry import assets, create

TEXTS = [
    "The boy sings.",
    "",
    "😂😂",
    "今天不行",
    "مرحبا يا صديقي",
    "Hi.\nHow are you?",
    "lol ok",
    "word " * 200,
    "The boy sings.",
]
FILE = """# ::id a
# ::snt The boy  sings.
(s / sing-01 :ARG0 (b / boy))

# ::id b
# ::snt Broken
(s / sing-01 :ARG0 (b / boy)

# ::id c
# ::snt Missing
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "graphs.penman"
    path.write_text(FILE, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["given", "dummy"])
def test_the_contract(name: str, file: Path) -> None:
    options: dict[str, Any] = {"path": file} if name == "given" else {}
    parser: GraphParser = create("graph parser", PARSERS, name, options)
    graphs = parser.parse(TEXTS)
    assert len(graphs) == len(TEXTS)
    assert parser.parse([]) == []
    assert [parser.parse([text])[0] for text in TEXTS] == graphs  # batch of one, no state
    assert create("graph parser", PARSERS, name, options).parse(TEXTS) == graphs
    assert {g.id for g in graphs} == {""}
    assert graphs[0] == graphs[-1]
    assert graphs[1].status == "empty"
    for graph in graphs:
        if graph.status in ("ok", "truncated"):
            assert graph_problem(graph) == ""
        else:
            assert graph.detail
    assert parser.identity and all(asset.present for asset in assets("graph parser", PARSERS, name, options))


def test_dummy_statuses() -> None:
    graphs = create("graph parser", PARSERS, "dummy").parse(TEXTS)
    assert [g.status for g in graphs] == ["ok", "empty", "empty", "ok", "ok", "ok", "ok", "truncated", "ok"]


def test_an_unknown_parser_or_option_is_named() -> None:
    with pytest.raises(ConfigError, match="did you mean 'given'"):
        create("graph parser", PARSERS, "givn")
    with pytest.raises(ConfigError, match="needs the option 'path'"):
        create("graph parser", PARSERS, "given")


def test_given_graphs_by_sentence(file: Path) -> None:
    got = GivenParser(file).parse(["The boy sings.", "Broken", "Missing", "unknown", " "])
    assert [g.status for g in got] == ["ok", "invalid", "failed", "failed", "empty"]
    assert f"{file}:7: 1 bracket" in got[1].detail
    assert f"{file}:9: no graph" in got[2].detail
    assert "no entry with this ::snt" in got[3].detail


def test_given_graphs_by_id(file: Path) -> None:
    parser = GivenParser(file)
    got = parser.by_id(["b", "a", "z"])
    assert [(g.id, g.status) for g in got] == [("b", "invalid"), ("a", "ok"), ("z", "failed")]
    assert "no entry with ::id z" in got[2].detail
    with pytest.raises(DataError, match="none of the 2 ids is in the file: asked for 'd1#0'"):
        parser.by_id(["d1#0", "d1#1"])
    assert parser.by_id([]) == []


def test_given_files_that_cannot_be_aligned_say_so(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text("# ::id a\n(b / boy)\n\n# ::id a\n(c / cat)\n")
    with pytest.raises(DataError, match=r"g\.txt:4 \[::id\]: the id 'a' occurs twice \(first on line 1\)"):
        GivenParser(path)
    path.write_text("# ::id a\n(b / boy)\n")
    with pytest.raises(DataError, match="no '# ::snt' in the file"):
        GivenParser(path).parse(["boy"])
