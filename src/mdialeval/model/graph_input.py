"""From the graphs of a pair's turns to tensors: one code for training and scoring.

``joint`` makes one graph of a dialogue: a root, a node a turn that is linked to the top of the turn's AMR, and ``same``
edges between equal content concepts of response and context.  ``separate`` keeps the graph of the context (the turns
under a node of their own) and that of the response apart, as published: no node sees the other side.

A context holds at most 128 nodes and a response 64.  The oldest turns are dropped first and counted; a single turn
that is too large keeps the nodes nearest its top.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from mdialeval.graphs.simplify import simplify
from mdialeval.graphs.turns import PairGraphs
from mdialeval.model.graph_relations import FAR, NEAR, NONE, SELF, relation
from mdialeval.records import Graph

Join = Literal["joint", "separate"]

MAX_CONTEXT, MAX_RESPONSE = 128, 64  # nodes, turn nodes included
MAX_PIECES = 8  # sub-words of a label
MAX_TURN = 15  # turns further back than this look the same
ROOT, CONTEXT, RESPONSE = 0, 1, 2  # segments; padding is in segment 0 too
STEP = 32  # node counts are padded to multiples of it, so that sums over nodes are made in the same order anywhere

FUNCTION = frozenset(
    (
        *("-", "+", "and", "or", "i", "you", "he", "she", "it", "we", "they", "this", "that", "these", "those"),
        *("here", "there", "who", "what", "when", "where", "how", "amr-unknown", "amr-empty", "multi-sentence"),
        *("contrast", "name", "person", "thing", "be", "have", "do", "possible"),
    )
)
"""Concepts that say nothing about what two turns have in common."""


class GraphRow(NamedTuple):
    """The graph of one pair.

    Attributes:
        pieces: sub-words of each node's label.
        edges: (node, node, relation forwards).
        segment: of each node, see ``ROOT``.
        turn: of each node, 0 the response, 1 the turn before it ...
        n_graphs: turns whose graph is in it.
        n_turns: turns of the pair.
        n_turns_dropped: turns left out because of the limit, the oldest ones.
        cut: whether a single turn was too large.
        apart: ``separate``: context and response do not see each other.
    """

    pieces: tuple[tuple[int, ...], ...]
    edges: tuple[tuple[int, int, int], ...]
    segment: tuple[int, ...]
    turn: tuple[int, ...]
    n_graphs: int
    n_turns: int
    n_turns_dropped: int
    cut: bool
    apart: bool

    @property
    def has_graph(self) -> bool:
        """Whether any turn has a graph."""
        return self.n_graphs > 0


class GraphBatch(NamedTuple):
    """P graphs of at most N nodes, whose labels have at most S sub-words, in the order of the pairs of a ``Batch``.

    Attributes:
        ids: (P, N, S) sub-words, padded with ``pad``.
        relations: (P, N, N) uint8, see ``graph_relations``.
        segment: (P, N).
        turn: (P, N).
        mask: (P, N) true for nodes.
        has_graph: (P,).
        pad: () the padding token.
    """

    ids: torch.Tensor
    relations: torch.Tensor
    segment: torch.Tensor
    turn: torch.Tensor
    mask: torch.Tensor
    has_graph: torch.Tensor
    pad: torch.Tensor

    def to(self, device: torch.device | str) -> GraphBatch:
        """The same batch on a device."""
        return GraphBatch(*(part.to(device) for part in self))


class _TurnNodes(NamedTuple):
    """A simplified turn: the top comes first."""

    labels: tuple[str, ...]
    edges: tuple[tuple[int, int, int], ...]


def encode_graphs(tokenizer: Any, pairs: Sequence[PairGraphs], join: Join) -> list[GraphRow]:
    """Graphs of pairs, same order; each distinct turn is simplified once and each label tokenised once."""
    distinct = {id(g): g for pair in pairs for g in (*pair.context, pair.response) if g and _usable(g)}
    turns = {key: _nodes(graph) for key, graph in distinct.items()}
    labels = sorted({label for turn in turns.values() for label in turn.labels} | {"dialogue", "turn", "response"})
    coded = tokenizer(
        [label.replace("-", " ") if label.strip("-") else label for label in labels],
        add_special_tokens=False,
        split_special_tokens=True,
    )["input_ids"]
    unknown = (tokenizer.unk_token_id or tokenizer.cls_token_id,)
    pieces = {label: tuple(ids[:MAX_PIECES]) or unknown for label, ids in zip(labels, coded, strict=True)}
    return [_row(pair, turns, pieces, join) for pair in pairs]


def _usable(graph: Graph) -> bool:
    return graph.status in ("ok", "truncated") and bool(graph.concepts)


def _nodes(graph: Graph) -> _TurnNodes:
    """The nodes of a turn by their distance from the top, so that any first part is connected."""
    plain = simplify(graph)
    near: list[list[int]] = [[] for _ in plain.concepts]
    for source, _, target in plain.edges:
        near[source].append(target)
        near[target].append(source)
    order, seen = [plain.top], {plain.top}
    for node in order:
        fresh = [n for n in dict.fromkeys(near[node]) if n not in seen]
        seen.update(fresh)
        order += fresh
    place = {node: i for i, node in enumerate(order)}
    edges = tuple((place[a], place[b], relation(role)) for a, role, b in plain.edges if a in place and b in place)
    return _TurnNodes(tuple(plain.concepts[n] for n in order), edges)


class _Draft:
    """A row in the making."""

    def __init__(self) -> None:
        self.labels: list[str] = []
        self.edges: list[tuple[int, int, int]] = []
        self.segment: list[int] = []
        self.turn: list[int] = []

    def node(self, label: str, segment: int, turn: int) -> int:
        self.labels.append(label)
        self.segment.append(segment)
        self.turn.append(min(turn, MAX_TURN))
        return len(self.labels) - 1

    def add_turn(self, nodes: _TurnNodes | None, limit: int, segment: int, turn: int, parent: int) -> None:
        """A turn node below ``parent``, and at most ``limit`` - 1 nodes of its graph."""
        head = self.node("response" if segment == RESPONSE else "turn", segment, turn)
        self.edges.append((parent, head, relation("turn")))
        if nodes is None:
            return
        kept = nodes.labels[: limit - 1]
        for label in kept:
            self.node(label, segment, turn)
        first, n = head + 1, len(kept)
        self.edges.append((head, first, relation("top")))
        self.edges += [(first + a, first + b, r) for a, b, r in nodes.edges if a < n and b < n]


def _row(
    pair: PairGraphs, turns: Mapping[int, _TurnNodes], pieces: Mapping[str, tuple[int, ...]], join: Join
) -> GraphRow:
    response, context = turns.get(id(pair.response)), [turns.get(id(g)) for g in pair.context]
    kept, room = 0, MAX_CONTEXT
    for nodes in reversed(context):
        size = 1 + (len(nodes.labels) if nodes else 0)
        if size > room and kept:
            break
        kept += 1
        room -= min(size, room)
    draft = _Draft()
    root = draft.node("dialogue", ROOT if join == "joint" else CONTEXT, 0)
    shown = context[len(context) - kept :]
    for place, nodes in enumerate(shown):
        draft.add_turn(nodes, MAX_CONTEXT, CONTEXT, kept - place, root)
    border = len(draft.labels)
    draft.add_turn(response, MAX_RESPONSE, RESPONSE, 0, root)
    if join == "joint":
        draft.edges += _same(draft.labels, border)
    found = [nodes for nodes in shown if nodes] + ([response] if response else [])
    return GraphRow(
        tuple(pieces[label] for label in draft.labels),
        tuple(e for e in draft.edges if join == "joint" or (e[0] < border) == (e[1] < border)),
        tuple(draft.segment),
        tuple(draft.turn),
        len(found),
        len(context) + 1,
        len(context) - kept,
        any(len(n.labels) >= MAX_CONTEXT for n in shown if n)
        or (response is not None and len(response.labels) >= MAX_RESPONSE),
        join == "separate",
    )


def _same(labels: Sequence[str], border: int) -> Iterable[tuple[int, int, int]]:
    """Edges from each content concept of the response to the equal ones of the context."""
    said: dict[str, list[int]] = {}
    for node, label in enumerate(labels[:border]):
        if label not in FUNCTION and label not in ("dialogue", "turn"):
            said.setdefault(label, []).append(node)
    for node in range(border + 1, len(labels)):
        for other in said.get(labels[node], ()):
            yield node, other, relation("same")


def collate_graphs(rows: Sequence[GraphRow], pad: int) -> GraphBatch:
    """The batch of some graphs.

    Args:
        rows: of ``encode_graphs``, all with the same ``join``.
        pad: id of the padding token.
    """
    sizes = np.array([len(row.segment) for row in rows])
    n = -(-int(sizes.max()) // STEP) * STEP
    s = max(len(pieces) for row in rows for pieces in row.pieces)
    ids = np.full((len(rows), n, s), pad, dtype=np.int64)
    segment, turn = np.zeros((len(rows), n), dtype=np.int64), np.zeros((len(rows), n), dtype=np.int64)
    for p, row in enumerate(rows):
        segment[p, : sizes[p]], turn[p, : sizes[p]] = row.segment, row.turn
        for node, pieces in enumerate(row.pieces):
            ids[p, node, : len(pieces)] = pieces
    mask = np.arange(n) < sizes[:, None]
    relations = _relations(rows, mask, segment)
    arrays = (ids, relations, segment, turn, mask, np.array([row.has_graph for row in rows]), np.array(pad))
    return GraphBatch(*(torch.from_numpy(array) for array in arrays))


def _relations(rows: Sequence[GraphRow], mask: Any, segment: Any) -> Any:
    """(P, N, N) uint8: roles where there is an edge, distances elsewhere."""
    relations = np.zeros((*mask.shape, mask.shape[1]), dtype=np.uint8)
    edges = np.array([(p, *edge) for p, row in enumerate(rows) for edge in row.edges], dtype=np.int64).reshape(-1, 4)
    both = np.concatenate([edges, edges[:, [0, 2, 1, 3]] + [0, 0, 0, 1]])
    both = both[np.argsort(-both[:, 3], kind="stable")]  # of several relations the lowest is written last
    relations[both[:, 0], both[:, 1], both[:, 2]] = both[:, 3]
    near = torch.from_numpy((relations > 0).astype(np.float32))
    reached = near + torch.eye(mask.shape[1])
    distance = np.full(relations.shape, FAR, dtype=np.uint8)  # a turn's nodes, and so the dialogue's, are connected
    for bucket in range(NEAR, FAR):  # distance 2, 3, 4
        further = (reached @ near > 0) & (reached == 0)
        distance[further.numpy()] = bucket
        reached = reached + further
    if rows[0].apart:
        distance[segment[:, :, None] != segment[:, None, :]] = NONE
    relations = np.where(relations > 0, relations, distance) * (mask[:, :, None] & mask[:, None, :])
    places = np.arange(mask.shape[1])
    relations[:, places, places] = SELF  # padding too, so that no row of a softmax is empty
    return relations
