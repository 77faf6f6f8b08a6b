"""A graph while it is being built: nodes and forward edges, and the step that makes a valid ``Graph`` of them."""

from __future__ import annotations

import re

from mdialeval.records import Graph, GraphStatus

_CONSTANT = re.compile(r'[-+]|-?\d[\d.,]*|"[^"]+"|imperative|interrogative|expressive')


class Draft:
    """Nodes and forward edges in the order in which they were found; several edges may point to one node."""

    def __init__(self) -> None:
        self.concepts: list[str] = []
        self.constants: set[int] = set()
        self.edges: dict[tuple[int, str, int], None] = {}
        self._joined: set[tuple[int, int]] = set()

    def node(self, concept: str) -> int:
        """A new node."""
        self.concepts.append(concept or "thing")
        return len(self.concepts) - 1

    def edge(self, source: int, role: str, target: int) -> None:
        """An edge; loops, and an edge against one that is already there, are left out."""
        if source == target or (target, source) in self._joined:
            return
        self._joined.add((source, target))
        self.edges[source, role, target] = None

    def value(self, source: int, role: str, constant: str) -> None:
        """An attribute, such as ``polarity -``, written once; a word that is no constant of AMR becomes a node."""
        if not _CONSTANT.fullmatch(constant):
            self.edge(source, role, self.node(constant))
            return
        if any(s == source and r == role and self.concepts[t] == constant for s, r, t in self.edges):
            return
        target = self.node(constant)
        self.constants.add(target)
        self.edges[source, role, target] = None

    def has(self, source: int, role: str) -> bool:
        """Whether a node has an edge with this role."""
        return any(s == source and r == role for s, r, _ in self.edges)

    def target(self, source: int, role: str) -> int | None:
        """The first node under this role."""
        return next((t for s, r, t in self.edges if s == source and r == role), None)

    def name(self, source: int, words: list[str]) -> None:
        """``:name (n / name :op1 "..." ...)``."""
        named = self.node("name")
        self.edge(source, "name", named)
        for i, word in enumerate(words, 1):
            self.value(named, f"op{i}", '"' + word.replace("\\", "").replace('"', "") + '"')

    def replace(self, old: int, new: int) -> None:
        """Let every edge of one node start or end at another."""
        moved = {(new if s == old else s, r, new if t == old else t): None for s, r, t in self.edges}
        self.edges = {(s, r, t): None for s, r, t in moved if s != t}
        self._joined = {(s, t) for s, _, t in self.edges}

    def graph(self, top: int, status: GraphStatus = "ok", detail: str = "") -> Graph:
        """What hangs together with the top, numbered depth first from it."""
        neighbours: list[list[int]] = [[] for _ in self.concepts]
        for source, _, target in self.edges:
            neighbours[source].append(target)
        for source, _, target in self.edges:
            neighbours[target].append(source)
        order: dict[int, int] = {}
        stack = [top]
        while stack:
            at = stack.pop()
            if at in order:
                continue
            order[at] = len(order)
            stack.extend(reversed(neighbours[at]))
        edges = [(order[s], r, order[t]) for s, r, t in self.edges if s in order]
        return Graph(
            "",
            0,
            tuple(self.concepts[i] for i in order),
            tuple(sorted(edges)),
            tuple(sorted(order[i] for i in self.constants if i in order)),
            status,
            detail,
        )
