"""What the simplifier, the linearisation and the drawings keep and drop."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from mdialeval.graphs.draw import svg, text_tree
from mdialeval.graphs.layout import depth_first
from mdialeval.graphs.linearise import linearise
from mdialeval.graphs.penman_codec import decode, encode, read_penman
from mdialeval.graphs.simplify import as_tree, simplify
from mdialeval.graphs.validate import graph_problem
from mdialeval.records import Graph

NAMED = decode(
    '(w / want-01 :polarity - :ARG0 (p / person :wiki "Ann_Lee" :name (n / name :op2 "Lee" :op1 "Ann"))'
    " :ARG1 (g / go-02 :ARG0 p :ARG4 (p2 / person :quant 2)))"
)


def test_simplified_amr() -> None:
    got = simplify(NAMED)
    assert graph_problem(got) == "" and got.constants == ()
    assert linearise(got) == (
        "( want :polarity - :ARG0 ( person :name ann lee ) :ARG1 ( go :ARG0 person :ARG4 ( person :quant 2 ) ) )"
    )
    assert sum(1 for _, _, target in got.edges if got.concepts[target] == "person") == 3  # the re-entrancy stays


def test_names_can_be_anonymised() -> None:
    got = simplify(NAMED, anonymise=True)
    assert "person_name_0" in got.concepts and "name" not in got.concepts
    assert graph_problem(got) == ""


def test_the_tree_repeats_what_comes_again() -> None:
    tree = simplify(NAMED, tree=True)
    assert len(tree.edges) == len(tree.concepts) - 1
    assert [tree.concepts[b] for _, _, b in tree.edges].count("person") == 3
    inverse = as_tree(decode("(b / boy :ARG0-of (s / sing-01))"))
    assert inverse.edges == ((0, "ARG0-of", 1),)


def test_a_graph_without_content_is_left_alone() -> None:
    failed = Graph("x", -1, (), (), status="failed", detail="no beam")
    assert simplify(failed) is failed
    assert linearise(failed) == "" and text_tree(failed) == ""
    assert ElementTree.fromstring(svg(failed)).tag.endswith("svg")


def test_a_concept_that_is_only_a_number_survives() -> None:
    assert simplify(decode("(d / date-entity :time 16-02)")).concepts == ("date-entity", "16-02")


def test_linearised_without_roles() -> None:
    assert linearise(decode("(b / boy :ARG0-of (s / sing-01 :mod (l / loud)))"), roles=False) == (
        "( boy ( sing-01 loud ) )"
    )


def test_the_text_tree_marks_what_comes_again() -> None:
    assert text_tree(NAMED).splitlines() == [
        "want-01",
        "├─ polarity -",
        "├─ ARG0 person",
        '│  ├─ wiki "Ann_Lee"',
        "│  └─ name name",
        '│     ├─ op2 "Lee"',
        '│     └─ op1 "Ann"',
        "└─ ARG1 go-02",
        "   ├─ ARG0 person ^",
        "   └─ ARG4 person",
        "      └─ quant 2",
    ]


def test_the_drawing_is_xml_with_every_node_and_edge() -> None:
    graph = decode('(a / and :op1 (b / boy :ARG0-of (s / see-01 :ARG1 b)) :op2 (x / "<&>" :mod (w / "猫")))')
    root = ElementTree.fromstring(svg(graph, "boys & <cats>", marked=[1]))
    space = "{http://www.w3.org/2000/svg}"
    assert root.findtext(f"{space}title") == "boys & <cats>"
    assert len(root.findall(f"{space}rect")) == len(graph.concepts)
    assert len(root.findall(f"{space}path")) == len(graph.edges)
    texts = [element.text for element in root.iter(f"{space}text")]
    assert {"<&>", "猫", "ARG0-of"} <= set(texts)
    assert [r.get("class") for r in root.findall(f"{space}rect")].count("graph-marked") == 1
    boxes = [
        (float(r.get("x", 0)), float(r.get("y", 0)), float(r.get("width", 0))) for r in root.findall(f"{space}rect")
    ]
    for i, (x, y, width) in enumerate(boxes):
        assert all(y != y2 or x + width <= x2 or x2 + w2 <= x for x2, y2, w2 in boxes[i + 1 :])  # none overlap


def test_gold_amr_is_walked_simplified_and_drawn(shared_data: Path) -> None:
    for entry in read_penman(shared_data / "amr" / "lpp-v1.6-dev.txt"):
        graph = entry.graph
        steps = depth_first(graph)
        assert len(steps) == len(graph.edges) + 1
        assert {s.node for s in steps} == set(range(len(graph.concepts)))
        for variant in (simplify(graph), simplify(graph, anonymise=True), simplify(graph, tree=True)):
            assert graph_problem(variant) == ""
            assert "wiki" not in {role for _, role, _ in variant.edges}
            assert decode(encode(variant)).status == "ok"
        assert linearise(simplify(graph)).count("(") == linearise(simplify(graph)).count(")")
        ElementTree.fromstring(svg(graph))
        assert len(text_tree(graph).splitlines()) == len(steps)
