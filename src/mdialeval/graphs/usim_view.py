"""What USim compares, whatever the scheme: tokens, and units with their yield and the labels of their incoming edges.

``from_passage`` follows the published measure over UCCA.  ``from_amr`` is this project's transfer to AMR, which the
paper argues for and its code lacks: a token is a concept without its sense (or a constant), in depth-first order; a
unit is a node with all that first-visit edges reach below it, re-entrant edges being remote as in UCCA; its labels
are the roles of all its incoming edges, inverse edges of the layout with ``-of``, and ``top`` for the root, so that a
graph of one node can be compared.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mdialeval.graphs.layout import depth_first
from mdialeval.graphs.ucca_codec import Passage, yields
from mdialeval.records import Graph

_SENSE = re.compile(r"-\d\d+$")
_CLOSING = frozenset(".?!")
_NUMBERED = re.compile(r"^(op|snt)\d+(?=$|-of$)")


@dataclass(frozen=True, slots=True)
class View:
    """One side of a USim comparison.

    Attributes:
        tokens: in text order (UCCA) or depth-first order (AMR).
        ends: positions of the last tokens of sentences; empty where sentences are not told apart.
        yields: per unit the positions below it.
        labels: per unit the labels of all its incoming edges, without equivalences.
        primary: per unit the label of its primary incoming edge.
        names: per unit what to call it in an explanation.
    """

    tokens: tuple[str, ...]
    ends: tuple[int, ...]
    yields: tuple[frozenset[int], ...]
    labels: tuple[frozenset[str], ...]
    primary: tuple[str, ...]
    names: tuple[str, ...]


def from_passage(passage: Passage, all_units: bool = False) -> View:
    """The foundational units with a parent and more than one terminal (``all_units``: at least one), root left out."""
    below = yields(passage)
    labels: list[set[str]] = [set() for _ in passage.units]
    primary: dict[int, str] = {}
    for edge in passage.edges:
        if edge.terminal:
            continue
        labels[edge.child].add(edge.category)
        if not edge.remote and passage.units[edge.parent].kind == "FN":
            primary[edge.child] = edge.category
    least = 1 if all_units else 2
    chosen = [i for i, u in enumerate(passage.units) if u.kind == "FN" and i in primary and len(below[i]) >= least]
    return View(
        tuple(t.text for t in passage.terminals),
        sentence_ends(passage),
        tuple(below[i] for i in chosen),
        tuple(frozenset(labels[i]) for i in chosen),
        tuple(primary[i] for i in chosen),
        tuple(passage.text(below[i]) for i in chosen),
    )


def sentence_ends(passage: Passage) -> tuple[int, ...]:
    """Positions that close a sentence: ``. ? !`` at or right after the end of a top scene, and ends of paragraphs.

    Runs of marks keep the last.  Where marks are glued to words only paragraph ends are found.
    """
    starts, closes = _top_scenes(passage)
    found: list[int] = []
    for i, terminal in enumerate(passage.terminals):
        last = i + 1 == len(passage.terminals) or passage.terminals[i + 1].paragraph != terminal.paragraph
        is_mark = terminal.text in _CLOSING and (i in closes or (i - 1 in closes and i not in starts))
        if last or is_mark:
            if found and found[-1] == i - 1 and terminal.text in _CLOSING:
                found.pop()
            found.append(i)
    return tuple(found)


def _top_scenes(passage: Passage) -> tuple[set[int], set[int]]:
    """First and last positions of the scenes (units with a process or state) that lie in no other scene."""
    below = yields(passage)
    parent = {
        e.child: e.parent
        for e in passage.edges
        if not e.terminal and not e.remote and passage.units[e.parent].kind == "FN"
    }
    scenes = {e.parent for e in passage.edges if e.category in ("P", "S") and not e.remote}
    starts, closes = set(), set()
    for scene in scenes:
        above = parent.get(scene, -1)
        while above != -1 and above not in scenes:
            above = parent.get(above, -1)
        if above == -1 and below[scene]:
            starts.add(min(below[scene]))
            closes.add(max(below[scene]))
    return starts, closes


def from_amr(graph: Graph, all_units: bool = True) -> View:
    """The nodes of an AMR graph as units (``all_units=False``: only nodes with something below them).

    Operand numbers are dropped from labels (``op1`` and ``op2`` are ``op``).
    """
    if not graph.concepts:
        return View((), (), (), (), (), ())
    order: list[int] = []
    parent: dict[int, int] = {}
    primary: dict[int, str] = {}
    labels: dict[int, set[str]] = {}
    for step in depth_first(graph):
        role = _NUMBERED.sub(r"\1", step.role)
        labels.setdefault(step.node, set()).add(role)
        if not step.again:
            order.append(step.node)
            primary[step.node] = role
            if step.parent >= 0:
                parent[step.node] = step.parent
    position = {node: i for i, node in enumerate(order)}
    below: dict[int, set[int]] = {node: {position[node]} for node in order}
    for node in reversed(order):
        if node in parent:
            below[parent[node]] |= below[node]
    chosen = [node for node in order if all_units or len(below[node]) > 1]
    tokens = tuple(lemma(graph.concepts[node]) for node in order)
    return View(
        tokens,
        (),
        tuple(frozenset(below[n]) for n in chosen),
        tuple(frozenset(labels[n]) for n in chosen),
        tuple(primary[n] for n in chosen),
        tuple(
            graph.concepts[n] if n not in parent else f"{graph.concepts[parent[n]]} {graph.concepts[n]}" for n in chosen
        ),
    )


def lemma(concept: str) -> str:
    """A concept without sense and quotation marks, lower-cased.

    >>> lemma("want-01"), lemma('"Anna"'), lemma("16-02-x")
    ('want', 'anna', '16-02-x')
    """
    return _SENSE.sub("", concept.strip('"')).lower()
