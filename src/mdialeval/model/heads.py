"""The head: from the sentence vector (fused with a graph vector where there is one) to one number a pair."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Head(nn.Module):
    """Standardise, one hidden layer, one output (a logit, or the value itself in regression).

    The features of a pretrained encoder lie in a narrow cone: without standardisation most of a head's early steps
    go into finding the mean.  ``fit`` sets mean and spread from a sample of the training data.

    Args:
        width: D, size of the input.
        hidden: size of the hidden layer; 0 = linear.
        dropout: on input and hidden layer.
        fused: size of the vector that a fusion makes of the standardised input; None = no fusion.
    """

    mean: Tensor
    spread: Tensor

    def __init__(self, width: int, hidden: int = 256, dropout: float = 0.1, fused: int | None = None) -> None:
        super().__init__()
        into = fused or width
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("spread", torch.ones(width))
        if hidden:
            self.layers = nn.Sequential(
                nn.Dropout(dropout), nn.Linear(into, hidden), nn.Tanh(), nn.Dropout(dropout), nn.Linear(hidden, 1)
            )
        else:
            self.layers = nn.Sequential(nn.Dropout(dropout), nn.Linear(into, 1))

    def fit(self, sample: Tensor) -> None:
        """Take mean and spread from a sample (N, D)."""
        self.mean.copy_(sample.mean(0))
        self.spread.copy_(sample.std(0).clamp(min=1e-6) if len(sample) > 1 else torch.ones_like(self.spread))

    def standardise(self, vectors: Tensor) -> Tensor:
        """(P, D) to (P, D), each feature with mean 0 and spread 1 over the sample."""
        return (vectors - self.mean) / self.spread

    def forward(self, vectors: Tensor) -> Tensor:
        """Standardised vectors (P, D), fused ones where there is a fusion, to (P,)."""
        outputs: Tensor = self.layers(vectors)
        return outputs.squeeze(1)
