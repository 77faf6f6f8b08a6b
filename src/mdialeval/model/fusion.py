"""Fusing the sentence vector H_S with the graph vector H_A, and the loss that pulls the two together.

- ``gate``: g*H_S + (1-g)*H_A, g = sigmoid(W H_S), as in the paper of SIMAMR (Yang et al., EMNLP Findings 2025); W has
  at most rank ``GATE_RANK``.
- ``concat``: [g*H_S ; (1-g)*H_A], as in its code.
- ``residual``: H_S + g*s*H_A with a learned scale s that starts small: training starts close to the text alone, and a
  pair without a graph keeps H_S bit for bit.

In the first two a pair without a graph has a learned vector in the place of H_A.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

FusionKind = Literal["gate", "concat", "residual"]
GateKind = Literal["vector", "scalar", "none"]
Contrast = Literal["none", "paper", "infonce"]

TEMPERATURE = 0.1  # of InfoNCE
GATE_RANK = 128  # of W in a gate a feature: a full matrix over several layers would outweigh the graph transformer
SCALE = 0.1  # of H_A in a residual before training; from 0 it hardly moves in a short training


class Fusion(nn.Module):
    """H_S (P, D) and pooled graphs (P, G) to the vector that the head classifies.

    Args:
        width: D.
        graph_width: G.
        kind: see the module docstring.
        gate: a number a feature, one for all of them (as in the code of SIMAMR), or none (g = 1/2, in ``residual`` 1).
    """

    def __init__(self, width: int, graph_width: int, kind: FusionKind, gate: GateKind) -> None:
        super().__init__()
        self.kind = kind
        self.width = 2 * width if kind == "concat" else width
        self.project = nn.Sequential(nn.Linear(graph_width, width), nn.LayerNorm(width))
        self.gate = None if gate == "none" else _gate(width, width if gate == "vector" else 1)
        self.scale = nn.Parameter(torch.full((width,), SCALE)) if kind == "residual" else None
        self.no_graph = nn.Parameter(torch.randn(width) * 0.02) if kind != "residual" else None

    def graph_vectors(self, graphs: Tensor, has_graph: Tensor) -> Tensor:
        """H_A (P, D) of pooled graphs (P, G)."""
        vectors: Tensor = self.project(graphs)
        if self.no_graph is None:
            return vectors
        return torch.where(has_graph.unsqueeze(1), vectors, self.no_graph.to(vectors.dtype))

    def forward(self, sentence: Tensor, graph: Tensor, has_graph: Tensor) -> Tensor:
        """The fused vectors, (P, ``width``).

        Args:
            sentence: H_S, (P, D).
            graph: H_A of ``graph_vectors``, (P, D).
            has_graph: (P,).
        """
        if self.scale is not None:
            gate = 1.0 if self.gate is None else self.gate(sentence).sigmoid()
            fused = sentence + gate * self.scale * graph
            return torch.where(has_graph.unsqueeze(1), fused, sentence.to(fused.dtype))
        gate = 0.5 if self.gate is None else self.gate(sentence).sigmoid()
        sides = gate * sentence, (1 - gate) * graph
        return torch.cat(sides, dim=1) if self.kind == "concat" else sides[0] + sides[1]


def _gate(width: int, outputs: int) -> nn.Module:
    """W and its bias: (P, D) to (P, outputs)."""
    if min(width, outputs) <= GATE_RANK:
        return nn.Linear(width, outputs)
    return nn.Sequential(nn.Linear(width, GATE_RANK, bias=False), nn.Linear(GATE_RANK, outputs))


def contrastive_loss(similarity: Tensor, positive: Tensor, has_graph: Tensor, form: Contrast) -> Tensor:
    """The contrastive loss of a batch, with its gradient; 0 where a class is missing.  Lower is better.

    ``paper``: minus the mean over the batch of exp(sim_i) / sum over negatives of exp(sim_j), summed over positives.
    ``infonce``: its bounded form, the mean over positives of -log(e_i / (e_i + sum over negatives of e_j)) with
    e = exp(sim / 0.1).

    Args:
        similarity: (P,) cosine of each pair's H_S and H_A, in [-1, 1].
        positive: (P,) whether the response is a good one.
        has_graph: (P,); pairs without a graph are left out.
        form: ``paper`` or ``infonce``.
    """
    good, bad = similarity[positive & has_graph], similarity[~positive & has_graph]
    if not len(good) or not len(bad):
        return similarity.sum() * 0.0
    if form == "paper":
        return -(good.exp().sum() / bad.exp().sum()) / len(similarity)
    against = torch.logsumexp(bad / TEMPERATURE, 0)
    return (torch.logaddexp(good / TEMPERATURE, against) - good / TEMPERATURE).mean()
