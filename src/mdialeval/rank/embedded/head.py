"""The trained part: a few small networks whose mean is the score."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import Any

import torch
from safetensors.torch import load
from torch import Tensor, nn

HEAD = "head.safetensors"
CARD = "card.md"
_CLIP = 4.0  # standardised features beyond this are outliers of the texts, not news about them


class Head(nn.Module):
    """An ensemble over standardised features.

    Every member sees, as COMET's referenceless estimator does (Rei et al. 2020), the sentence vectors
    ``[h, s, h * s, |h - s|]`` of its layers' mean, and the alignment and text features beside them.

    Args:
        layers: (M, N) one row a member: weights of the layers, summing to one.
        width: D.
        n_features: alignment and text features.
        hidden: sizes of the hidden layers of each member.
        dropout: on the inputs and after each hidden layer, in training.
    """

    layers: Tensor
    pool_mean: Tensor
    pool_spread: Tensor
    feature_mean: Tensor
    feature_spread: Tensor

    def __init__(
        self,
        layers: Tensor,
        width: int,
        n_features: int,
        hidden: Sequence[int],
        dropout: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        super().__init__()
        self.register_buffer("layers", layers)
        for name, size in (("pool", (layers.shape[1], width)), ("feature", (n_features,))):
            self.register_buffer(f"{name}_mean", torch.zeros(size))
            self.register_buffer(f"{name}_spread", torch.ones(size))
        self.members = nn.ModuleList(_network(4 * width + n_features, hidden, dropout) for _ in range(layers.shape[0]))

    def inputs(self, source: Tensor, hypothesis: Tensor, features: Tensor, member: int) -> Tensor:
        """(B, 4 D + F) what one member sees.

        Args:
            source: (B, N, D) pooled hidden states of all layers.
            hypothesis: (B, N, D).
            features: (B, F).
            member: its index.
        """
        weight = self.layers[member][:, None]
        s, h = (((x - self.pool_mean) / self.pool_spread * weight).sum(1) for x in (source, hypothesis))  # (B, D)
        rest = ((features - self.feature_mean) / self.feature_spread).clamp(-_CLIP, _CLIP)
        return torch.cat([h, s, h * s, (h - s).abs(), rest], dim=1)

    def forward(self, source: Tensor, hypothesis: Tensor, features: Tensor) -> Tensor:
        """(B,) scores; see ``inputs``."""
        scores = [net(self.inputs(source, hypothesis, features, i))[:, 0] for i, net in enumerate(self.members)]
        return torch.stack(scores).mean(0)


def _network(inputs: int, hidden: Sequence[int], dropout: tuple[float, float]) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Dropout(dropout[0])]
    for size in hidden:
        layers += [nn.Linear(inputs, size), nn.GELU(), nn.Dropout(dropout[1])]
        inputs = size
    return nn.Sequential(*layers, nn.Linear(inputs, 1))


def load_head() -> tuple[Head, Tensor]:
    """The shipped head in float32, and the mean vectors (L, D) that its alignment features are centred by."""
    state: dict[str, Any] = {name: value.float() for name, value in load(_read(HEAD)).items()}
    centre = state.pop("centre")
    hidden = [
        state[name].shape[0] for name in sorted(state) if name.startswith("members.0.") and name.endswith(".bias")
    ]
    head = Head(state["layers"], state["pool_mean"].shape[1], state["feature_mean"].shape[0], hidden[:-1])
    head.load_state_dict(state)
    return head.eval(), centre


def read_card() -> str:
    """The model card: data, training, figures, limits, licence."""
    return _read(CARD).decode()


def _read(name: str) -> bytes:
    return (resources.files("mdialeval.rank.embedded") / name).read_bytes()
