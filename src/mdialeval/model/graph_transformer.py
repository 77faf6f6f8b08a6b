"""The graph transformer: nodes attend to nodes through their relations; no positions.

Relation-aware attention on keys and values (Shaw et al., NAACL 2018, as used for AMR by Zhu et al., EMNLP 2019): the
relation of two nodes adds a vector to the key and another one to the value.  Both sums are made over the small
relation vocabulary (gathered, or scattered into), so that no (P, N, N, width) tensor ever exists.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from mdialeval.model.graph_input import CONTEXT, MAX_TURN, RESPONSE, GraphBatch
from mdialeval.model.graph_relations import N_RELATIONS, SELF

PART = 32  # graphs are processed together whose sizes round up to the same multiple of it


class RelationAttention(nn.Module):
    """Multi-head attention of nodes to nodes.

    Args:
        width: of the nodes' vectors, a multiple of ``heads``.
        heads: H; the relations' vectors are shared by all heads, as published.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.inputs = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.relation_keys = nn.Parameter(torch.randn(N_RELATIONS, self.size) * 0.02)
        self.relation_values = nn.Parameter(torch.randn(N_RELATIONS, self.size) * 0.02)

    def forward(self, nodes: Tensor, relations: Tensor) -> tuple[Tensor, Tensor]:
        """New vectors, and who looked where.

        Args:
            nodes: (P, N, width).
            relations: (P, N, N) int64; nobody looks where it is ``PAD`` or ``NONE``.

        Returns:
            (P, N, width) and the attention (P, H, N, N), whose rows sum to 1.
        """
        p, n, width = nodes.shape
        index = relations.unsqueeze(1).expand(p, self.heads, n, n)
        query, key, value = self.inputs(nodes).view(p, n, 3, self.heads, self.size).permute(2, 0, 3, 1, 4)  # (P,H,N,d)
        query = query / math.sqrt(self.size)
        by_relation = query @ self.relation_keys.T  # (P, H, N, relations)
        scores = query @ key.transpose(2, 3) + by_relation.gather(3, index)  # (P, H, N, N)
        attention = scores.masked_fill(index < SELF, -math.inf).softmax(3)
        spent = torch.zeros_like(by_relation, dtype=attention.dtype).scatter_add(3, index, attention)
        mixed = attention.to(value.dtype) @ value + spent.to(value.dtype) @ self.relation_values
        return self.output(mixed.transpose(1, 2).reshape(p, n, width)), attention


class GraphLayer(nn.Module):
    """Attention, then a feed-forward layer of twice the width, each normalised before and added after."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = RelationAttention(width, heads)
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, nodes: Tensor, relations: Tensor) -> tuple[Tensor, Tensor]:
        """(P, N, width) to (P, N, width), and the attention (P, H, N, N)."""
        mixed, attention = self.attention(self.before(nodes), relations)
        nodes = nodes + self.dropout(mixed)
        return nodes + self.dropout(self.feed(self.between(nodes))), attention


class GraphTransformer(nn.Module):
    """Graphs to one vector a pair.

    Args:
        embedding_width: W, of the text encoder's input embeddings.
        width: of the nodes' vectors, a multiple of ``heads``.
        layers: at least 1.
        heads: H.
        dropout: in the layers.
    """

    def __init__(self, embedding_width: int, width: int, layers: int, heads: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.width = 4 * width
        self.project = nn.Linear(embedding_width, width)
        self.segment, self.turn = nn.Embedding(3, width), nn.Embedding(MAX_TURN + 1, width)
        self.start = nn.LayerNorm(width)
        self.layers = nn.ModuleList(GraphLayer(width, heads, dropout) for _ in range(layers))
        self.end = nn.LayerNorm(width)

    def forward(self, batch: GraphBatch, embeddings: nn.Embedding) -> Tensor:
        """[c, r, c*r, abs(c-r)] of the mean context node c and the mean response node r: (P, 4 width).

        Args:
            batch: the graphs.
            embeddings: the text encoder's input embeddings: a label is the mean of its sub-words.
        """
        pooled = batch.segment.new_zeros((len(batch.mask), self.width), dtype=torch.float32)
        for rows, part in parts_by_size(batch):
            vectors = self.pool(self.nodes(part, embeddings)[0], part)
            pooled = pooled.index_copy(0, rows, vectors.float())
        return pooled

    def nodes(self, batch: GraphBatch, embeddings: nn.Embedding) -> tuple[Tensor, list[Tensor]]:
        """The nodes' vectors (P, N, width), and each layer's attention (P, H, N, N)."""
        p, n, _ = batch.ids.shape
        means = nn.functional.embedding_bag(
            batch.ids.flatten(0, 1), embeddings.weight, mode="mean", padding_idx=int(batch.pad)
        )
        nodes = self.project(nn.functional.normalize(means, dim=1).view(p, n, -1) * math.sqrt(means.shape[1]))
        nodes = self.start(nodes + self.segment(batch.segment) + self.turn(batch.turn))
        relations, maps = batch.relations.long(), []
        for layer in self.layers:
            nodes, attention = layer(nodes, relations)
            maps.append(attention)
        return self.end(nodes), maps

    @staticmethod
    def pool(nodes: Tensor, batch: GraphBatch) -> Tensor:
        """See ``forward``; a side without nodes is zero."""
        sides = []
        for segment in (CONTEXT, RESPONSE):
            member = (batch.mask & (batch.segment == segment)).to(nodes.dtype).unsqueeze(2)  # (P, N, 1)
            sides.append((nodes * member).sum(1) / member.sum(1).clamp(min=1))
        context, response = sides
        return torch.cat([context, response, context * response, (context - response).abs()], dim=1)


def parts_by_size(batch: GraphBatch) -> list[tuple[Tensor, GraphBatch]]:
    """A batch in parts of about equally large graphs: (places in the batch, part); attention is square in the size."""
    steps = (batch.mask.sum(1) + PART - 1) // PART
    parts = []
    for step in steps.unique().tolist():
        rows = (steps == step).nonzero().squeeze(1)
        n = min(step * PART, batch.mask.shape[1])
        part = GraphBatch(
            batch.ids[rows, :n],
            batch.relations[rows, :n, :n],
            batch.segment[rows, :n],
            batch.turn[rows, :n],
            batch.mask[rows, :n],
            batch.has_graph[rows],
            batch.pad,
        )
        parts.append((rows, part))
    return parts
