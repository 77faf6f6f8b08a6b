"""A graph as one line of words, roles and brackets, for prompts and for reading."""

from __future__ import annotations

from mdialeval.graphs.layout import depth_first
from mdialeval.records import Graph


def linearise(graph: Graph, roles: bool = True) -> str:
    """Depth first, inverse roles kept, brackets round nodes that have something below them.

    A node that comes again is repeated by its concept alone.  Without ``roles`` only concepts and brackets are left.

    >>> edges = ((0, "ARG0", 1), (0, "ARG1", 2), (2, "ARG0", 1))
    >>> linearise(Graph("", 0, ("want", "boy", "go"), edges))
    '( want :ARG0 boy :ARG1 ( go :ARG0 boy ) )'
    """
    steps = depth_first(graph)
    parents = {step.parent for step in steps}
    words: list[str] = []
    open_at: list[int] = []
    for step in steps:
        while open_at and open_at[-1] >= step.depth:
            words.append(")")
            open_at.pop()
        if roles and step.parent >= 0:
            words.append(f":{step.role}")
        if step.node in parents and not step.again:
            words.append("(")
            open_at.append(step.depth)
        words.append(graph.concepts[step.node])
    return " ".join(words + [")"] * len(open_at))
