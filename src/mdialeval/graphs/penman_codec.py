"""PENMAN text to ``Graph`` and back, and files of PENMAN graphs.  PENMAN exists only here.

The library ``penman`` reads the syntax; roles become forward (``a :ARG0-of b`` is ``b :ARG0 a``; ``consist-of`` and
``prep-*-of`` are roles of their own), every occurrence of a constant is a node of its own, alignments are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import penman
from penman.models.amr import model as AMR

from mdialeval.errors import DataError
from mdialeval.files import replace_atomically
from mdialeval.graphs.validate import Problem, graph_problem, strip_alignment, text_problem, tree_problem
from mdialeval.records import Graph

EMPTY_CONCEPT = "amr-empty"
"""A graph of this single node stands for a text without content and is read with status ``empty``."""

_SYMBOL = re.compile(r'[^\s"()/:~#]+')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_KEY = re.compile(r"(?:^|\s)::([\w-]+)(?:\s+|$)")


@dataclass(frozen=True, slots=True)
class PenmanEntry:
    """One graph of a PENMAN file.

    Attributes:
        graph: its ``id`` is ``::id``; its ``detail`` names file and line where it is invalid.
        sentence: ``::snt``, or the empty string.
        line: 1-based line of the file where the entry begins.
        metadata: all ``::key value`` of the entry.
    """

    graph: Graph
    sentence: str
    line: int
    metadata: Mapping[str, str] = field(default_factory=dict)


def decode(text: str, id: str = "") -> Graph:
    """One graph from PENMAN text.  Never raises on broken text: status ``invalid`` and the reason.

    >>> decode("(w / want-01 :ARG0 (b / boy) :ARG1 (g / go-02 :ARG0 b))").edges
    ((0, 'ARG0', 1), (0, 'ARG1', 2), (2, 'ARG0', 1))
    >>> decode("(w / want-01 :ARG0 (i / i)))").detail
    'line 1: a closing bracket too many: remove it'
    """
    graph, problem = _decode(text, id)
    if problem is None:
        return graph
    where = f"line {problem.line}: " if problem.line else ""
    return replace(graph, detail=where + problem.reason)


def _decode(text: str, id: str) -> tuple[Graph, Problem | None]:
    broken = Graph(id, -1, (), (), status="invalid")
    problem = text_problem(text)
    if problem is not None:
        return broken, problem
    try:
        tree = penman.parse(text)
    except penman.DecodeError as error:
        return broken, Problem(error.lineno, (error.message or "not PENMAN").lower())
    reason = tree_problem(tree.node)
    if reason:
        return broken, Problem(None, reason)
    graph, reason = _from_tree(tree.node, id)
    reason = reason or graph_problem(graph)
    if reason:
        return broken, Problem(None, reason)
    if graph.concepts == (EMPTY_CONCEPT,):
        return replace(graph, status="empty", detail="the text has no content"), None
    return graph, None


def _from_tree(root: Any, id: str) -> tuple[Graph, str]:
    """A valid PENMAN node tree as a graph; nodes in the order of their definitions."""
    definitions: list[tuple[str, str]] = []
    branches: list[tuple[str, str, Any]] = []
    _collect(root, definitions, branches)
    index = {variable: i for i, (variable, _) in enumerate(definitions)}
    concepts = [_unquoted(concept) for _, concept in definitions]
    constants: list[int] = []
    edges: dict[tuple[int, str, int], None] = {}
    for variable, role, value in branches:
        name = value[0] if isinstance(value, tuple) else value
        source, target = index[variable], index.get(name)
        if target is None:
            if AMR.is_role_inverted(role):
                return Graph(id, -1, (), (), status="invalid"), f"{role} {name}: a constant has no roles of its own"
            target = len(concepts)
            concepts.append(name)
            constants.append(target)
        if AMR.is_role_inverted(role):
            edges[target, AMR.invert_role(role)[1:], source] = None
        else:
            edges[source, role[1:], target] = None
    return Graph(id, 0, tuple(concepts), tuple(edges), tuple(constants)), ""


def _collect(node: Any, definitions: list[tuple[str, str]], branches: list[tuple[str, str, Any]]) -> None:
    variable, parts = node
    definitions.append((variable, strip_alignment(next(value for role, value in parts if role == "/"))))
    for role, value in parts:
        if role == "/":
            continue
        if isinstance(value, tuple):
            branches.append((variable, strip_alignment(role), value))
            _collect(value, definitions, branches)
        else:
            branches.append((variable, strip_alignment(role), strip_alignment(value)))


def encode(graph: Graph, indent: int | None = 4) -> str:
    """PENMAN text of a graph, laid out from its top; inverse roles where a node is reached only against an edge.

    A graph without nodes is written as ``(a / amr-empty)``.

    >>> encode(Graph("", 0, ("go-02", "boy"), ((0, "ARG0", 1),)), indent=None)
    '(g / go-02 :ARG0 (b / boy))'

    Raises:
        ValueError: the graph is not valid (programmer error: invalid graphs carry no nodes).
    """
    if not graph.concepts:
        return f"(a / {EMPTY_CONCEPT})"
    reason = graph_problem(graph)
    if reason:
        raise ValueError(f"graph {graph.id!r} cannot be written: {reason}")
    names = _variables(graph)
    constants = set(graph.constants)
    triples: list[tuple[str, str, str]] = [
        (names[i], ":instance", _quoted(c)) for i, c in enumerate(graph.concepts) if i not in constants
    ]
    for source, role, target in graph.edges:
        value = _quoted(graph.concepts[target]) if target in constants else names[target]
        triples.append((names[source], f":{role}", value))
    if graph.top in constants:
        return f"({names[graph.top]} / {_quoted(graph.concepts[graph.top])})"
    return str(penman.encode(penman.Graph(triples, top=names[graph.top]), indent=indent, model=AMR))


def _variables(graph: Graph) -> list[str]:
    """A variable a node: the first letter of its concept and a running number, as people write AMR."""
    taken: dict[str, int] = {}
    names = []
    for concept in graph.concepts:
        letter = next((c for c in concept.lower() if "a" <= c <= "z"), "x")
        taken[letter] = taken.get(letter, 0) + 1
        names.append(letter if taken[letter] == 1 else f"{letter}{taken[letter]}")
    return names


def _quoted(symbol: str) -> str:
    if _SYMBOL.fullmatch(symbol) or _STRING.fullmatch(symbol):
        return symbol
    return '"' + symbol.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'


def _unquoted(concept: str) -> str:
    """A node's concept is never a string in AMR: quotation marks only protect characters of the syntax."""
    if _STRING.fullmatch(concept) and len(concept) > 2:
        return re.sub(r"\\(.)", r"\1", concept[1:-1])
    return concept


def read_penman(path: str | Path) -> Iterator[PenmanEntry]:
    """The graphs of a PENMAN file: entries are separated by blank lines and carry ``# ::id`` and ``# ::snt``.

    One broken entry never harms the next: it comes with status ``invalid`` and a detail that begins with file and line.
    An entry with metadata and no graph has status ``failed``.

    Raises:
        DataError: no such file, not UTF-8, or no graph in it.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DataError("no such file", path) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise DataError("not UTF-8: save the file as UTF-8", path, line) from None
    found = False
    for line, comments, body in _blocks(text.splitlines()):
        metadata = _metadata(comments)
        if not body and not {"id", "snt"} & set(metadata):
            continue  # the header of an AMR release
        found = True
        yield _entry(path, line, len(comments), metadata, body)
    if not found:
        raise DataError("no graph in the file: expected PENMAN such as (w / want-01 :ARG0 (b / boy))", path)


def _entry(path: Path, line: int, offset: int, metadata: Mapping[str, str], body: list[str]) -> PenmanEntry:
    id, sentence = metadata.get("id", ""), metadata.get("snt", "")
    if not body:
        detail = f"{path}:{line}: no graph under this ::id"
        return PenmanEntry(Graph(id, -1, (), (), status="failed", detail=detail), sentence, line, metadata)
    graph, problem = _decode("\n".join(body), id)
    if problem is not None:
        at = line + offset + (problem.line - 1 if problem.line else 0)
        graph = replace(graph, detail=f"{path}:{at}: {problem.reason}")
    elif metadata.get("status") == "truncated":
        graph = replace(graph, status="truncated", detail=metadata.get("detail", ""))
    return PenmanEntry(graph, sentence, line, metadata)


def _blocks(lines: Iterable[str]) -> Iterator[tuple[int, list[str], list[str]]]:
    """Entries as (first line, comment lines, graph lines); comments before a blank line join a bare graph after it."""
    start, comments, body = 1, list[str](), list[str]()
    gap = False
    for number, line in enumerate(lines, 1):
        is_comment = line.lstrip().startswith("#")
        if not line.strip():
            if body:
                yield start, comments, body
                comments, body = [], []
            gap = bool(comments)
            continue
        if is_comment and (body or gap):
            yield start, comments, body
            comments, body = [], []
        if not comments and not body:
            start = number
        gap = False
        (comments if is_comment else body).append(line)
    if comments or body:
        yield start, comments, body


def _metadata(comments: Iterable[str]) -> dict[str, str]:
    """``# ::id 7 ::date today`` and ``# ::snt any text :: even this``."""
    found: dict[str, str] = {}
    for comment in comments:
        text = comment.lstrip().lstrip("#").strip()
        keys = list(_KEY.finditer(text))
        if keys and keys[0].group(1) in ("snt", "tok", "detail"):
            keys = keys[:1]
        for i, key in enumerate(keys):
            end = keys[i + 1].start() if i + 1 < len(keys) else len(text)
            found[key.group(1)] = text[key.end() : end].strip()
    return found


def write_penman(path: str | Path, entries: Iterable[tuple[Graph, str]]) -> int:
    """Write graphs with their sentences as a PENMAN file, atomically; the number of entries.

    A graph without nodes that is not ``empty`` (failed, invalid) is written as metadata alone with ``::status``.
    """
    written = 0

    def write(stream: BinaryIO) -> None:
        nonlocal written
        for graph, sentence in entries:
            lines = [f"# ::id {graph.id}", f"# ::snt {' '.join(sentence.split())}"]
            if graph.status not in ("ok", "empty"):
                lines.append(f"# ::status {graph.status}")
                lines += [f"# ::detail {' '.join(graph.detail.split())}"] if graph.detail else []
            if graph.concepts or graph.status == "empty":
                lines.append(encode(graph))
            stream.write(("\n".join(lines) + "\n\n").encode())
            written += 1

    replace_atomically(Path(path), write)
    return written
