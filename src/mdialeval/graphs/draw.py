"""A graph as a text tree for terminals and as SVG for reports; no library needed."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Collection
from typing import NamedTuple

from mdialeval.graphs.layout import Step, depth_first
from mdialeval.records import Graph

_CHARACTER, _ROW, _BOX, _GAP = 7.4, 76.0, 26.0, 14.0  # pixels


def text_tree(graph: Graph) -> str:
    """One line a node; what was drawn above is marked ``^`` and not drawn again.

    >>> edges = ((0, "ARG0", 1), (0, "ARG1", 2), (2, "ARG0", 1))
    >>> print(text_tree(Graph("", 0, ("want-01", "boy", "go-02"), edges)))
    want-01
    ├─ ARG0 boy
    └─ ARG1 go-02
       └─ ARG0 boy ^
    """
    steps = depth_first(graph)
    lines: list[str] = []
    open_at: list[bool] = []  # for each depth whether a sibling follows
    for i, step in enumerate(steps):
        label = graph.concepts[step.node] + (" ^" if step.again else "")
        if step.depth == 0:
            lines.append(label)
            continue
        follows = _sibling_follows(steps, i)
        open_at[step.depth - 1 :] = [follows]
        indent = "".join("│  " if is_open else "   " for is_open in open_at[: step.depth - 1])
        lines.append(f"{indent}{'├' if follows else '└'}─ {step.role} {label}")
    return "\n".join(lines)


def _sibling_follows(steps: list[Step], i: int) -> bool:
    for later in steps[i + 1 :]:
        if later.depth <= steps[i].depth:
            return later.depth == steps[i].depth
    return False


class _Box(NamedTuple):
    x: float  # centre
    y: float  # centre
    width: float


def svg(graph: Graph, title: str = "", marked: Collection[int] = ()) -> str:
    """An SVG element: nodes in rows by depth, re-entrant edges dashed, ``marked`` nodes in the accent colour.

    Colours come from CSS classes with defaults inside, so a report may restyle them (``graph-node``, ``graph-marked``,
    ``graph-constant``, ``graph-edge``, ``graph-again``, ``graph-role``).
    """
    steps = depth_first(graph)
    boxes = _boxes(graph, steps)
    width = max((b.x + b.width / 2 for b in boxes.values()), default=0.0) + _GAP
    height = max((b.y for b in boxes.values()), default=0.0) + _BOX
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="sans-serif" font-size="12">',
        f"<title>{html.escape(title or graph.id or 'semantic graph')}</title>",
    ]
    parts += [_edge(boxes[s.parent], boxes[s.node], s) for s in steps if s.parent >= 0]
    parts += [_node(graph, node, box, node in marked) for node, box in boxes.items()]
    return "\n".join([*parts, "</svg>"])


def _boxes(graph: Graph, steps: list[Step]) -> dict[int, _Box]:
    """Leaves side by side, a parent over the middle of its children and never narrower than its own label."""
    children: dict[int, list[int]] = {step.node: [] for step in steps}
    depth = {}
    for step in steps:
        if not step.again:
            depth[step.node] = step.depth
            if step.parent >= 0:
                children[step.parent].append(step.node)
    own = {node: _width(graph.concepts[node]) for node in children}
    span: dict[int, float] = {}
    for step in reversed(steps):
        if not step.again:
            below = sum(span[child] for child in children[step.node])
            span[step.node] = max(own[step.node] + _GAP, below)
    left = {graph.top: _GAP / 2} if steps else {}
    boxes: dict[int, _Box] = {}
    for step in steps:
        node = step.node
        if step.again:
            continue
        at = left[node]
        boxes[node] = _Box(at + span[node] / 2, _BOX / 2 + 2 + depth[node] * _ROW, own[node])
        at += (span[node] - sum(span[child] for child in children[node])) / 2
        for child in children[node]:
            left[child] = at
            at += span[child]
    return boxes


def _width(label: str) -> float:
    cells = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in label)
    return max(cells * _CHARACTER + 14, 3 * _CHARACTER + 14)


def _edge(start: _Box, end: _Box, step: Step) -> str:
    kind, dash = ("graph-again", ' stroke-dasharray="4 3"') if step.again else ("graph-edge", "")
    if step.again:
        bend = 40 if end.x >= start.x else -40
        middle_x, middle_y = (start.x + end.x) / 2 + bend, (start.y + end.y) / 2
        path = f"M {start.x:.1f} {start.y:.1f} Q {middle_x:.1f} {middle_y:.1f} {end.x:.1f} {end.y:.1f}"
        label_x, label_y = (start.x + end.x) / 4 + middle_x / 2, middle_y
    else:
        path = f"M {start.x:.1f} {start.y + _BOX / 2:.1f} L {end.x:.1f} {end.y - _BOX / 2:.1f}"
        label_x, label_y = (start.x + end.x) / 2, (start.y + end.y) / 2
    return (
        f'<path class="{kind}" d="{path}" fill="none" stroke="#888"{dash}/>'
        f'<text class="graph-role" x="{label_x:.1f}" y="{label_y + 4:.1f}" text-anchor="middle" font-size="10" '
        f'fill="#555" stroke="#fff" stroke-width="3" paint-order="stroke">{html.escape(step.role)}</text>'
    )


def _node(graph: Graph, node: int, box: _Box, is_marked: bool) -> str:
    constant = node in graph.constants
    kind = "graph-marked" if is_marked else "graph-constant" if constant else "graph-node"
    fill = "#fde2cf" if is_marked else "#f2f2f2" if constant else "#e3ecfa"
    return (
        f'<rect class="{kind}" x="{box.x - box.width / 2:.1f}" y="{box.y - _BOX / 2:.1f}" width="{box.width:.1f}" '
        f'height="{_BOX:.0f}" rx="{3 if constant else 12}" fill="{fill}" stroke="#667"/>'
        f'<text x="{box.x:.1f}" y="{box.y + 4:.1f}" text-anchor="middle" fill="#112">'
        f"{html.escape(graph.concepts[node])}</text>"
    )
