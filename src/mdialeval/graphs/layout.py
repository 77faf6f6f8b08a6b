"""A graph walked depth first from its top: the one order that linearising, drawing and USim over AMR share."""

from __future__ import annotations

from typing import NamedTuple

from mdialeval.records import Graph


class Step(NamedTuple):
    """One edge of the walk.

    Attributes:
        parent: the node it comes from; -1 for the top.
        role: ``top`` for the top; with ``-of`` where the edge is walked against its direction.
        node: the node it reaches.
        depth: edges from the top along the walk.
        again: whether the node was reached before (a re-entrancy).
    """

    parent: int
    role: str
    node: int
    depth: int
    again: bool


def depth_first(graph: Graph) -> list[Step]:
    """Every edge once, the top first.  Edges are walked backwards only to what cannot be reached forwards.

    >>> [(s.role, s.node) for s in depth_first(Graph("", 0, ("a", "b", "c"), ((0, "mod", 1), (2, "ARG0", 1))))]
    [('top', 0), ('mod', 1), ('ARG0-of', 2)]
    """
    if not graph.concepts:
        return []
    out: list[list[int]] = [[] for _ in graph.concepts]
    back: list[list[int]] = [[] for _ in graph.concepts]
    for index, (source, _, target) in enumerate(graph.edges):
        out[source].append(index)
        back[target].append(index)
    steps = [Step(-1, "top", graph.top, 0, False)]
    seen, walked, forward = {graph.top}, set[int](), set[int]()
    _reach(graph, graph.top, out, forward)
    stack = [(graph.top, 0, iter(out[graph.top] + back[graph.top]))]
    while stack:
        node, depth, ways = stack[-1]
        for index in ways:
            source, role, target = graph.edges[index]
            is_forward = source == node
            other = target if is_forward else source
            if index in walked or (not is_forward and other in forward):
                continue  # what can be reached forwards walks its edges itself
            walked.add(index)
            steps.append(Step(node, role if is_forward else f"{role}-of", other, depth + 1, other in seen))
            if other not in seen:
                seen.add(other)
                _reach(graph, other, out, forward)
                stack.append((other, depth + 1, iter(out[other] + back[other])))
                break
        else:
            stack.pop()
    return steps


def _reach(graph: Graph, start: int, out: list[list[int]], reached: set[int]) -> None:
    """Add what can be reached forwards from a node."""
    stack = [start]
    while stack:
        node = stack.pop()
        if node not in reached:
            reached.add(node)
            stack.extend(graph.edges[index][2] for index in out[node])
