"""What makes a graph usable: one validator for PENMAN text, PENMAN trees and ``Graph`` records.

Common readers accept much that is broken: ``penman`` returns the first of two roots, takes an undefined variable for a
constant and a second definition of a variable for another node; ``smatchpp`` scores ``(a / a`` as perfect.  Here a
broken graph gets the status ``invalid`` with the reason, and no measure scores it.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, NamedTuple

from mdialeval.records import Graph

MAX_NODES = 10_000
"""Nodes of the largest graph that is read; a whole UCCA passage of 600 tokens has about 1,500."""
MAX_DEPTH = 200
"""Brackets inside brackets in PENMAN text; deeper text is degenerate parser output."""

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\#.*$|[()]|[^\s()"#]+|"|\#', re.MULTILINE)
_VARIABLE = re.compile(r"[a-z]\d*|[a-z]{2,3}\d+")
_ALIGNMENT = re.compile(r"~(?:[a-z]\.?)?[0-9]+(?:,[0-9]+)*$")
_ANY_VALUE = ("li", "value", "op")
"""Roles whose bare value may look like a variable (list items ``:li a``)."""

_APART = "put a blank line between graphs, or join them under multi-sentence"
_CUT = "add it, unless the graph was cut off"


class Problem(NamedTuple):
    """One reason why a graph is invalid, and the 1-based line of the text it was found on (None: not in a text)."""

    line: int | None
    reason: str


def text_problem(text: str) -> Problem | None:
    """The first problem of the brackets of PENMAN text: exactly one balanced pair, nothing before, between or after.

    >>> text_problem("(a / a")
    Problem(line=1, reason='1 bracket is not closed: add it, unless the graph was cut off')
    >>> text_problem("(a / a) (b / b)")
    Problem(line=1, reason='a second root: put a blank line between graphs, or join them under multi-sentence')
    """
    depth, closed, opened_on = 0, False, 1
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token.startswith("#") and (depth == 0 or len(token) > 1):
            continue
        if token == "(":
            if closed:
                return Problem(
                    _line(text, match),
                    "a second root: put a blank line between graphs, or join them under multi-sentence",
                )
            depth += 1
            opened_on = opened_on if depth > 1 else _line(text, match)
            if depth > MAX_DEPTH:
                return Problem(_line(text, match), f"brackets are nested deeper than {MAX_DEPTH}")
        elif token == ")":
            depth -= 1
            if depth < 0:
                return Problem(_line(text, match), "a closing bracket too many: remove it")
            closed = depth == 0
        elif token == '"':
            return Problem(_line(text, match), "a quotation mark is not closed: add it")
        elif depth == 0:
            return Problem(_line(text, match), f"text outside the brackets: {token[:30]!r}")
    if depth:
        return Problem(opened_on, f"{_brackets(depth)} not closed: {_CUT}")
    return None if closed else Problem(1, "no graph")


def _brackets(n: int) -> str:
    return "1 bracket is" if n == 1 else f"{n} brackets are"


def _line(text: str, match: re.Match[str]) -> int:
    return text.count("\n", 0, match.start()) + 1


def tree_problem(node: Any) -> str:
    """The first problem of a parsed PENMAN node ``(variable, branches)``, or the empty string.

    Every node has a variable and a concept, a variable is defined exactly once, every role has a value, and what looks
    like a variable (``b``, ``x12``) is defined somewhere.
    """
    defined: set[str] = set()
    bare: list[tuple[str, str]] = []
    stack = [node]
    while stack:
        variable, branches = stack.pop()
        if variable is None:
            return "a node without variable and concept: ()"
        if variable in defined:
            return f"variable {variable!r} is defined twice: rename one, or refer to it by its name alone"
        defined.add(variable)
        concepts = [value for role, value in branches if role == "/"]
        if len(concepts) != 1 or not concepts[0]:
            return (
                f"variable {variable!r} has {len(concepts) or 'no'} concepts"
                if concepts != [None]
                else (f"variable {variable!r} has no concept")
            )
        for role, value in branches:
            if role == "/":
                continue
            if strip_alignment(role) in (":", ""):
                return f"an edge of {variable!r} has no role"
            if value is None:
                return f"{role} of {variable!r} has no value"
            if isinstance(value, tuple):
                stack.append(value)
            else:
                bare.append((strip_alignment(role), strip_alignment(value)))
    for role, value in bare:
        is_free = role.lstrip(":").rstrip("0123456789") in _ANY_VALUE
        if value not in defined and _VARIABLE.fullmatch(value) and not is_free:
            return f"{role} {value}: variable {value!r} is not defined: write ({value} / concept) once"
    return ""


def strip_alignment(symbol: str) -> str:
    """A PENMAN symbol without its surface alignment.

    >>> strip_alignment("want-01~e.3")
    'want-01'
    """
    return symbol if "~" not in symbol else _ALIGNMENT.sub("", symbol)


def graph_problem(graph: Graph, max_nodes: int = MAX_NODES) -> str:
    """The first problem of a graph record, or the empty string: limits, indices, labels, one root, connected.

    Connected means that every node is reached from the top when edges are walked in both directions.  Cycles and
    re-entrancies are allowed: AMR has both.

    >>> graph_problem(Graph("", 0, ("a", "b"), ()))
    "not connected: 'b' cannot be reached from the top"
    """
    n = len(graph.concepts)
    if n == 0:
        return "no nodes"
    if n > max_nodes:
        return f"{n} nodes: the limit is {max_nodes}"
    if not 0 <= graph.top < n:
        return f"the top {graph.top} is not one of the {n} nodes"
    if "" in graph.concepts:
        return f"node {graph.concepts.index('')} has no concept"
    constants = set(graph.constants)
    neighbours: list[list[int]] = [[] for _ in range(n)]
    for source, role, target in graph.edges:
        if not (0 <= source < n and 0 <= target < n):
            return f"the edge ({source}, {role}, {target}) names a node that does not exist"
        if not role:
            return f"an edge of {graph.concepts[source]!r} has no role"
        if source in constants:
            return f"the constant {graph.concepts[source]} has an edge of its own ({role})"
        neighbours[source].append(target)
        neighbours[target].append(source)
    reached = {graph.top}
    stack = [graph.top]
    while stack:
        for neighbour in neighbours[stack.pop()]:
            if neighbour not in reached:
                reached.add(neighbour)
                stack.append(neighbour)
    if len(reached) < n:
        lost = next(i for i in range(n) if i not in reached)
        return f"not connected: {graph.concepts[lost]!r} cannot be reached from the top"
    return ""


def validated(graph: Graph, max_nodes: int = MAX_NODES) -> Graph:
    """The graph itself where it is valid or not ``ok`` anyway; otherwise with status ``invalid`` and the reason."""
    if graph.status not in ("ok", "truncated"):
        return graph
    reason = graph_problem(graph, max_nodes)
    return dataclasses.replace(graph, status="invalid", detail=reason) if reason else graph
