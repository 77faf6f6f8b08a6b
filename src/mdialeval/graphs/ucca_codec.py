"""UCCA "standard" XML to ``Passage``, and a passage as a ``Graph``.  UCCA XML exists only here.

UCCA holds more than a ``Graph`` has room for (positions and paragraphs of words, remote edges, implicit units), and the
USim measures need it, so a passage is a record of its own; ``to_graph`` maps it for drawing, checks and Smatch.
Definition of the scheme: Abend and Rappoport, ACL 2013.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

from mdialeval.errors import DataError
from mdialeval.graphs.validate import MAX_NODES
from mdialeval.records import Graph, GraphStatus

UnitKind = Literal["FN", "LKG", "PNCT"]
CATEGORIES = frozenset(["P", "S", "A", "D", "C", "E", "N", "R", "F", "H", "L", "G", "U", "T"])
"""Categories of foundational units: process, state, participant, adverbial, centre, elaborator, connector, relator,
function, parallel scene, linker, ground, punctuation, time."""
REMOTE_SUFFIX = "*"
"""Marks the role of a remote edge in ``to_graph``."""

_GLUED = re.compile(r"\w[.?!]$")


@dataclass(frozen=True, slots=True)
class Terminal:
    """A word or punctuation mark; its place in ``Passage.terminals`` is its position."""

    text: str
    paragraph: int
    punctuation: bool


@dataclass(frozen=True, slots=True)
class Unit:
    """A node of the foundational layer: foundational unit (FN), linkage (LKG) or punctuation (PNCT)."""

    id: str
    kind: UnitKind
    implicit: bool = False


@dataclass(frozen=True, slots=True)
class UccaEdge:
    """From the unit ``parent`` to the unit ``child``, or to the terminal ``child`` where ``terminal`` is set."""

    parent: int
    category: str
    child: int
    remote: bool = False
    terminal: bool = False


@dataclass(frozen=True, slots=True)
class Passage:
    """An annotated UCCA passage.

    Attributes:
        terminals: in the order of the text.
        units: in the order of the file.
        edges: in the order of the file.
        root: index of the unit above all others; -1 in a passage without units.
        status: ``ok``; ``empty`` without terminals; ``invalid`` with the reason in ``detail``.
    """

    id: str
    terminals: tuple[Terminal, ...]
    units: tuple[Unit, ...]
    edges: tuple[UccaEdge, ...]
    root: int
    status: GraphStatus = "ok"
    detail: str = ""

    def text(self, positions: frozenset[int] | None = None) -> str:
        """The words at some positions (default all), in order, separated by blanks."""
        chosen = range(len(self.terminals)) if positions is None else sorted(positions)
        return " ".join(self.terminals[i].text for i in chosen)


def read_ucca(path: str | Path) -> Passage:
    """A passage from a file of UCCA standard XML.

    A file that is XML of this form but breaks the scheme (two roots, a cycle, a lost unit) gives a passage with status
    ``invalid`` whose detail names the file.

    Raises:
        DataError: no such file, not XML, not UCCA standard XML, an edge to a node that does not exist.
    """
    path = Path(path)
    try:
        tree = ElementTree.parse(path)
    except FileNotFoundError:
        raise DataError("no such file", path) from None
    except ElementTree.ParseError as error:
        raise DataError(f"not well-formed XML: {error}", path, error.position[0]) from None
    passage = _passage(tree.getroot(), path)
    if passage.status == "invalid":
        return Passage(passage.id, (), (), (), -1, "invalid", f"{path}: {passage.detail}")
    return passage


def _passage(root: ElementTree.Element, path: Path) -> Passage:
    layers = {layer.get("layerID"): layer for layer in root.findall("layer")}
    if root.tag != "root" or "0" not in layers or "1" not in layers:
        raise DataError("not UCCA standard XML: expected <root passageID=..> with the layers 0 and 1", path)
    words = sorted(layers["0"].findall("node"), key=lambda node: int(node.get("ID", "0.0").partition(".")[2]))
    place = {node.get("ID", ""): i for i, node in enumerate(words)}
    terminals = tuple(_terminal(node, path) for node in words)
    nodes = layers["1"].findall("node")
    index = {node.get("ID", ""): i for i, node in enumerate(nodes)}
    units = tuple(_unit(node, path) for node in nodes)
    edges = tuple(edge for i, node in enumerate(nodes) for edge in _edges(i, node, index, place, path))
    top, reason = _root(units, edges)
    passage = Passage(root.get("passageID", path.stem), terminals, units, edges, top)
    if not terminals:
        return Passage(passage.id, (), (), (), -1, "empty", "the passage has no words")
    reason = reason or passage_problem(passage)
    return Passage(passage.id, terminals, units, edges, top, "invalid", reason) if reason else passage


def _attributes(node: ElementTree.Element) -> dict[str, str]:
    found = node.find("attributes")
    return {} if found is None else dict(found.attrib)


def _terminal(node: ElementTree.Element, path: Path) -> Terminal:
    attributes = _attributes(node)
    if "text" not in attributes:
        raise DataError(f"terminal {node.get('ID')} has no text", path, field="text")
    paragraph = attributes.get("paragraph", "1")
    if not paragraph.isdecimal():
        raise DataError(f"terminal {node.get('ID')}: paragraph {paragraph!r} is not a number", path, field="paragraph")
    return Terminal(attributes["text"], int(paragraph), node.get("type") == "Punctuation")


def _unit(node: ElementTree.Element, path: Path) -> Unit:
    kind = node.get("type", "")
    if kind not in ("FN", "LKG", "PNCT"):
        raise DataError(f"unit {node.get('ID')} has the type {kind!r}: expected FN, LKG or PNCT", path, field="type")
    return Unit(node.get("ID", ""), kind, _attributes(node).get("implicit") == "True")  # type: ignore[arg-type]


def _edges(
    parent: int, node: ElementTree.Element, index: dict[str, int], place: dict[str, int], path: Path
) -> Iterator[UccaEdge]:
    for edge in node.findall("edge"):
        target = edge.get("toID", "")
        if target not in index and target not in place:
            raise DataError(
                f"unit {node.get('ID')} has an edge to {target!r}, which does not exist", path, field="toID"
            )
        category = edge.get("type") or next((c.get("tag", "") for c in edge.findall("category")), "")
        if not category:
            raise DataError(f"an edge of unit {node.get('ID')} has no category", path, field="type")
        remote = _attributes(edge).get("remote") == "True"
        terminal = target in place
        yield UccaEdge(parent, category, place[target] if terminal else index[target], remote, terminal)


def _root(units: tuple[Unit, ...], edges: tuple[UccaEdge, ...]) -> tuple[int, str]:
    """The one foundational unit without a primary parent, or the reason why there is none."""
    below = {e.child for e in edges if not e.remote and not e.terminal and units[e.parent].kind == "FN"}
    roots = [i for i, unit in enumerate(units) if unit.kind == "FN" and i not in below]
    if len(roots) == 1:
        return roots[0], ""
    if not roots:
        return -1, "no root: every unit has a parent" if units else "no units"
    return -1, "several roots: " + ", ".join(units[i].id for i in roots[:5])


def passage_problem(passage: Passage) -> str:
    """The first problem of a passage's structure, or the empty string: limits, primary tree, all words covered."""
    if len(passage.units) + len(passage.terminals) > MAX_NODES:
        return f"{len(passage.units) + len(passage.terminals)} nodes: the limit is {MAX_NODES}"
    parents: dict[int, int] = {}
    covered: dict[int, int] = {}
    for edge in passage.edges:
        if edge.remote or passage.units[edge.parent].kind == "LKG":
            continue
        seen = covered if edge.terminal else parents
        if edge.child in seen:
            what = f"word {edge.child + 1}" if edge.terminal else f"unit {passage.units[edge.child].id}"
            return f"{what} has two primary parents"
        seen[edge.child] = edge.parent
    for unit in parents:
        steps, at = 0, unit
        while at in parents and steps <= len(passage.units):
            at, steps = parents[at], steps + 1
        if at != passage.root:
            return f"unit {passage.units[unit].id} is not below the root"
    lost = next((i for i in range(len(passage.terminals)) if i not in covered), None)
    return "" if lost is None else f"word {lost + 1} ({passage.terminals[lost].text!r}) belongs to no unit"


def yields(passage: Passage) -> list[frozenset[int]]:
    """The positions below each unit along primary edges, punctuation included; remote edges do not extend a yield."""
    children: list[list[UccaEdge]] = [[] for _ in passage.units]
    for edge in passage.edges:
        if not edge.remote:
            children[edge.parent].append(edge)
    found: dict[int, frozenset[int]] = {}
    stack = [(i, False) for i in range(len(passage.units))]
    while stack:
        unit, is_ready = stack.pop()
        if unit in found:
            continue
        if is_ready:
            own = frozenset(e.child for e in children[unit] if e.terminal)
            found[unit] = own.union(*(found[e.child] for e in children[unit] if not e.terminal))
        else:
            stack.append((unit, True))
            stack.extend((e.child, False) for e in children[unit] if not e.terminal)
    return [found[i] for i in range(len(passage.units))]


def glued_tokens(passage: Passage) -> int:
    """How many words still carry a full stop, question or exclamation mark (``genes.``).

    Sentences cannot be found in such a passage, and it cannot be compared word by word with one that is split.
    """
    return sum(1 for t in passage.terminals if not t.punctuation and _GLUED.search(t.text))


def to_graph(passage: Passage) -> Graph:
    """The passage as a graph: units first, then a constant node a word, categories as roles, remote ones with ``*``.

    Concepts are ``FN``, ``LKG``, ``PNCT``, ``IMPLICIT`` and the words; a word's edge has the role ``Terminal``.
    """
    n = len(passage.units)
    concepts = ["IMPLICIT" if unit.implicit else unit.kind for unit in passage.units]
    concepts += [terminal.text or '""' for terminal in passage.terminals]
    edges = tuple(
        (e.parent, e.category + (REMOTE_SUFFIX if e.remote else ""), e.child + n if e.terminal else e.child)
        for e in passage.edges
    )
    constants = tuple(range(n, len(concepts)))
    return Graph(passage.id, passage.root, tuple(concepts), edges, constants, passage.status, passage.detail)
