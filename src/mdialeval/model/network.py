"""The evaluator network: text encoder -> sentence vector H_S (P, D) -> head -> one number a pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, nn

from mdialeval.model.batches import Attention, Batch
from mdialeval.model.encoder import Layers, Pooling, TextEncoder
from mdialeval.model.heads import Head

Loss = Literal["bce", "mse"]


@dataclass(frozen=True, slots=True)
class Architecture:
    """What is needed to build the network around a base encoder, besides weights.

    Attributes:
        loss: ``bce`` = classification (score = sigmoid, in [0, 1]), ``mse`` = regression (score unbounded).
    """

    attention: Attention = "shared"
    pooling: Pooling = "parts"
    layers: Layers = "last"
    hidden: int = 256
    dropout: float = 0.1
    loss: Loss = "bce"


class EvaluatorNetwork(nn.Module):
    """See the module docstring.

    Args:
        base: an ``AutoModel``.
        architecture: how it is used.
    """

    def __init__(self, base: Any, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture
        self.encoder = TextEncoder(base, architecture.attention, architecture.pooling, architecture.layers)
        self.head = Head(self.encoder.width, architecture.hidden, architecture.dropout)

    def forward(self, inputs: Batch | Tensor) -> Tensor:
        """Outputs (P,): logits (``bce``) or values (``mse``).

        Args:
            inputs: a batch, or what ``encoder.pooled`` made of one: where the base is frozen that is computed once.
        """
        outputs: Tensor = self.head(self.sentence_vectors(inputs))
        return outputs

    def sentence_vectors(self, inputs: Batch | Tensor) -> Tensor:
        """H_S, (P, D)."""
        return self.encoder.combine(inputs) if isinstance(inputs, Tensor) else self.encoder(inputs)

    def to_scores(self, outputs: Tensor) -> Tensor:
        """Outputs as scores: higher is better."""
        return outputs.sigmoid() if self.architecture.loss == "bce" else outputs

    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """The loss of each pair, (P,)."""
        if self.architecture.loss == "bce":
            return nn.functional.binary_cross_entropy_with_logits(outputs, labels, reduction="none")
        return nn.functional.mse_loss(outputs, labels, reduction="none")


def changed_state(network: EvaluatorNetwork, trained: set[str]) -> dict[str, Tensor]:
    """The weights and buffers that differ from the base encoder: all but the base's untrained ones."""
    return {
        name: value.detach().cpu().contiguous()
        for name, value in network.state_dict().items()
        if not name.startswith("encoder.base.") or name in trained
    }


def trained_names(network: nn.Module) -> set[str]:
    """Names of the parameters that gradients reach."""
    return {name for name, parameter in network.named_parameters() if parameter.requires_grad}
