"""Graphs as Smatch triples, and the parts of a graph that the aspect scores look at.

Conventions (Cai and Knight, ACL 2013, as the ``smatch`` package has them): lower case; quotation marks do not count;
roles forward, ``a :mod b`` being ``b :domain a``; constants are attributes of their node; the root has one attribute
``TOP`` with a constant value; duplicate triples count once.  Aspects after Damonte, Cohen and Satta (EACL 2017).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from mdialeval.records import Graph

Aspect = Literal[
    "unlabelled", "no_senses", "concepts", "named_entities", "negation", "wikification", "reentrancies", "srl"
]
ASPECTS: tuple[Aspect, ...] = (
    "unlabelled",
    "no_senses",
    "concepts",
    "named_entities",
    "negation",
    "wikification",
    "reentrancies",
    "srl",
)
ALIGNED: frozenset[Aspect] = frozenset({"unlabelled", "no_senses", "reentrancies", "srl"})
"""Aspects that are a Smatch over changed triples; the others compare multisets of labels."""

_SENSE = re.compile(r"-\d+$")
_ARGUMENT = re.compile(r"arg\d+")


@dataclass(frozen=True, slots=True)
class Triples:
    """The triples of one graph over its variables 0..n-1.

    Attributes:
        concepts: one a variable; None where the concept is not a triple (aspects).
        attributes: (variable, role, value), no duplicates.
        relations: (variable, role, variable), no duplicates.
        nodes: for each variable the index of its node in the graph.
    """

    concepts: tuple[str | None, ...]
    attributes: tuple[tuple[int, str, str], ...]
    relations: tuple[tuple[int, str, int], ...]
    nodes: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.concepts) - self.concepts.count(None) + len(self.attributes) + len(self.relations)


def triples(graph: Graph) -> Triples:
    """The triples of a valid graph."""
    constants = set(graph.constants)
    nodes = tuple(i for i in range(len(graph.concepts)) if i not in constants or i == graph.top)
    variable = {node: i for i, node in enumerate(nodes)}
    attributes: dict[tuple[int, str, str], None] = {(variable[graph.top], "TOP", "top"): None}
    relations: dict[tuple[int, str, int], None] = {}
    for source, role, target in graph.edges:
        role = role.lower()
        if target not in variable:
            attributes[variable[source], role, _plain(graph.concepts[target])] = None
        elif role == "mod":
            relations[variable[target], "domain", variable[source]] = None
        else:
            relations[variable[source], role, variable[target]] = None
    return Triples(tuple(_plain(graph.concepts[n]) for n in nodes), tuple(attributes), tuple(relations), nodes)


def _plain(label: str) -> str:
    text = label.lower()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def restricted(view: Triples, aspect: Aspect) -> Triples:
    """The triples that one of the ``ALIGNED`` aspects compares.

    ``unlabelled``: every role is one role; ``no_senses``: concepts without their sense number; ``reentrancies``: the
    edges into nodes with several incoming edges, and ``srl``: the edges ARG0, ARG1 .., both with the concepts of
    their nodes.
    """
    if aspect == "unlabelled":
        attributes = {(v, r if r == "TOP" else "any", value): None for v, r, value in view.attributes}
        relations = {(a, "any", b): None for a, _, b in view.relations}
        return Triples(view.concepts, tuple(attributes), tuple(relations), view.nodes)
    if aspect == "no_senses":
        concepts = tuple(c if c is None else _SENSE.sub("", c) for c in view.concepts)
        return Triples(concepts, view.attributes, view.relations, view.nodes)
    incoming = Counter(b for _, _, b in view.relations)
    if aspect == "reentrancies":
        kept = tuple(edge for edge in view.relations if incoming[edge[2]] > 1)
    else:
        kept = tuple(edge for edge in view.relations if _ARGUMENT.fullmatch(edge[1]))
    touched = {v for a, _, b in kept for v in (a, b)}
    concepts = tuple(c if v in touched else None for v, c in enumerate(view.concepts))
    return Triples(concepts, (), kept, view.nodes)


def labels(view: Triples, aspect: Aspect) -> Counter[str]:
    """The multiset of labels that one of the other aspects compares.

    ``concepts``: all concepts; ``named_entities``: concepts with a :name; ``negation``: concepts with :polarity -;
    ``wikification``: values of :wiki.
    """
    concepts = [c or "" for c in view.concepts]
    if aspect == "concepts":
        return Counter(concepts)
    if aspect == "named_entities":
        return Counter(concepts[a] for a, role, _ in view.relations if role == "name")
    if aspect == "negation":
        return Counter(concepts[v] for v, role, value in view.attributes if (role, value) == ("polarity", "-"))
    return Counter(value for _, role, value in view.attributes if role == "wiki")
