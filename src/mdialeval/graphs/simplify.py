"""AMR with what a neural model does not need taken out (after Konstas et al., ACL 2017, and Song et al., TACL 2020).

Roles are forward already; :wiki goes; senses go; literals become ordinary nodes; a name becomes one node; lower case.
The published preprocessing repeats re-entrant concepts, so that its graphs are trees; here re-entrancy stays, and the
tree is an option.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from mdialeval.graphs.layout import depth_first
from mdialeval.records import Graph

_SENSE = re.compile(r"-\d\d+$")
_OPERAND = re.compile(r"op(\d+)")


def simplify(graph: Graph, *, anonymise: bool = False, tree: bool = False) -> Graph:
    """The simplified graph; one that is not ``ok`` or ``truncated`` is returned as it is.

    Args:
        anonymise: a named thing becomes one node ``<type>_name_<k>`` (k counts from 0 for each type) and its name goes;
            otherwise its name stays as one node with the words of the name.
        tree: repeat a re-entrant concept as a leaf of its own instead of keeping the re-entrancy.
    """
    if graph.status not in ("ok", "truncated") or not graph.concepts:
        return graph
    graph = replace(graph, edges=tuple(e for e in graph.edges if e[1] != "wiki"))
    graph = _connected(_merge_names(graph, anonymise))
    constants = set(graph.constants)
    concepts = tuple(_plain(c, i in constants) for i, c in enumerate(graph.concepts))
    graph = replace(graph, concepts=concepts, constants=())
    return as_tree(graph) if tree else graph


def _plain(concept: str, is_constant: bool) -> str:
    if is_constant:
        return concept.strip('"').lower() or '""'
    return (_SENSE.sub("", concept) or concept).lower()


def _merge_names(graph: Graph, anonymise: bool) -> Graph:
    concepts, edges = list(graph.concepts), list(graph.edges)
    kinds: Counter[str] = Counter()
    for owner, role, name in graph.edges:
        words = _name(graph, name) if role == "name" else ""
        if not words:
            continue
        edges = [e for e in edges if e[0] != name]
        if anonymise:
            edges.remove((owner, role, name))
            kind = _SENSE.sub("", graph.concepts[owner])
            concepts[owner] = f"{kind}_name_{kinds[kind]}"
            kinds[kind] += 1
        else:
            concepts[name] = words
    return replace(graph, concepts=tuple(concepts), edges=tuple(edges))


def _name(graph: Graph, node: int) -> str:
    """The words of a name node, or the empty string where the node is more than a name."""
    if graph.concepts[node] != "name":
        return ""
    operands = [(role, target) for source, role, target in graph.edges if source == node]
    if not operands or any(not _OPERAND.fullmatch(role) or t not in graph.constants for role, t in operands):
        return ""
    ordered = sorted(operands, key=lambda pair: int(pair[0][2:]))
    return " ".join(graph.concepts[target].strip('"') for _, target in ordered)


def _connected(graph: Graph) -> Graph:
    """What can still be reached from the top, renumbered in the old order."""
    return subgraph(graph, {step.node for step in depth_first(graph)})


def subgraph(graph: Graph, nodes: Iterable[int]) -> Graph:
    """The graph of some of its nodes (the top among them) and the edges between them."""
    kept = sorted(set(nodes))
    place = {old: new for new, old in enumerate(kept)}
    return replace(
        graph,
        top=place[graph.top],
        concepts=tuple(graph.concepts[i] for i in kept),
        edges=tuple((place[a], role, place[b]) for a, role, b in graph.edges if a in place and b in place),
        constants=tuple(place[c] for c in graph.constants if c in place),
    )


def as_tree(graph: Graph) -> Graph:
    """The depth-first tree: a node that comes again becomes a new leaf, inverse edges keep ``-of``."""
    concepts: list[str] = []
    edges: list[tuple[int, str, int]] = []
    constants: list[int] = []
    place: dict[int, int] = {}
    for step in depth_first(graph):
        new = len(concepts)
        concepts.append(graph.concepts[step.node])
        if step.node in graph.constants:
            constants.append(new)
        if step.parent >= 0:
            edges.append((place[step.parent], step.role, new))
        if not step.again:
            place[step.node] = new
    return replace(graph, top=0, concepts=tuple(concepts), edges=tuple(edges), constants=tuple(constants))
