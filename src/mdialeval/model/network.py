"""The evaluator network: text encoder -> sentence vector H_S (P, D) -> head -> one number a pair.

With a graph branch, a graph transformer makes H_A of the pair's semantic graph and both are fused before the head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from mdialeval.errors import ConfigError
from mdialeval.model.adapters import Tuning, equip
from mdialeval.model.batches import Attention, Batch
from mdialeval.model.encoder import Layers, Pooling, TextEncoder
from mdialeval.model.fusion import Fusion, FusionKind, GateKind
from mdialeval.model.graph_input import GraphBatch, Join
from mdialeval.model.graph_transformer import GraphTransformer
from mdialeval.model.heads import Head
from mdialeval.model.likelihood import LikelihoodEncoder

Loss = Literal["bce", "mse"]
Reads = Literal["text", "likelihood"]


@dataclass(frozen=True, slots=True)
class GraphBranch:
    """How graphs are used.

    Attributes:
        join: one graph of the dialogue, or context and response apart.
        width, layers, heads: of the graph transformer.
        fusion, gate: see ``fusion``.
        dropout: share of the pairs that train without their graph.
        only: the text is not read at all.
    """

    join: Join = "joint"
    width: int = 64
    layers: int = 2
    heads: int = 4
    fusion: FusionKind = "residual"
    gate: GateKind = "vector"
    dropout: float = 0.1
    only: bool = False


@dataclass(frozen=True, slots=True)
class Architecture:
    """What is needed to build the network around a base encoder, besides weights.

    Attributes:
        loss: ``bce`` = classification (score = sigmoid, in [0, 1]), ``mse`` = regression (score unbounded).
        graph: the graph branch, or None.
        tuning: what is inserted into the base encoder to learn in its place, or None.
        reads: ``likelihood`` = the base is a causal language model (see ``likelihood``); pooling ``parts`` then also
            reads the response in its context.
    """

    attention: Attention = "shared"
    pooling: Pooling = "parts"
    layers: Layers = "last"
    hidden: int = 256
    dropout: float = 0.1
    loss: Loss = "bce"
    graph: GraphBranch | None = None
    tuning: Tuning | None = None
    reads: Reads = "text"


class EvaluatorNetwork(nn.Module):
    """See the module docstring.

    Args:
        base: an ``AutoModel``.
        architecture: how it is used.
    """

    def __init__(self, base: Any, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture
        self.encoder: TextEncoder | LikelihoodEncoder
        if architecture.reads == "likelihood":
            self.encoder = LikelihoodEncoder(base, architecture.pooling == "parts")
        else:
            self.encoder = TextEncoder(base, architecture.attention, architecture.pooling, architecture.layers)
        if architecture.tuning is not None:
            equip(base, architecture.tuning)
        self.graphs: GraphTransformer | None = None
        self.fusion: Fusion | None = None
        if (branch := architecture.graph) is not None:
            width = base.config.hidden_size
            self.graphs = GraphTransformer(width, branch.width, branch.layers, branch.heads)
            kind: FusionKind = "gate" if branch.only else branch.fusion
            self.fusion = Fusion(self.encoder.width, self.graphs.width, kind, "none" if branch.only else branch.gate)
        fused = self.fusion.width if self.fusion else None
        self.head = Head(self.encoder.width, architecture.hidden, architecture.dropout, fused)

    @property
    def text_encoder(self) -> TextEncoder:
        """The encoder, for what looks inside it.

        Raises:
            ConfigError: likelihoods are read, and there is none.
        """
        if isinstance(self.encoder, TextEncoder):
            return self.encoder
        raise ConfigError(
            "this evaluator reads the likelihoods of a causal language model, which stays a model of its own: it "
            "cannot be exported, drawn or tuned as a text encoder"
        )

    @property
    def reads_text(self) -> bool:
        """Whether the text encoder is used."""
        return self.architecture.graph is None or not self.architecture.graph.only

    def forward(
        self, inputs: Batch | Tensor, graphs: GraphBatch | None = None, aligned: bool = False, vectors: bool = False
    ) -> Any:
        """Outputs (P,): logits (``bce``) or values (``mse``).

        Args:
            inputs: a batch, or what ``encoder.pooled`` made of one: where the base is frozen that is computed once.
            graphs: of the same pairs in the same order; where None, a network with a graph branch takes every pair as
                one without a graph.
            aligned: return (2, P), the outputs and the cosine of H_S and H_A of every pair, for the contrastive loss.
            vectors: return a pair, the outputs and H_S (P, D), for siamese training.
        """
        sentence = self.head.standardise(self.sentence_vectors(inputs)) if self.reads_text else None
        outputs = self._outputs(inputs, sentence, graphs, aligned)
        return (outputs, sentence) if vectors else outputs

    def _outputs(
        self, inputs: Batch | Tensor, sentence: Tensor | None, graphs: GraphBatch | None, aligned: bool
    ) -> Tensor:
        """See ``forward``."""
        if self.graphs is None or self.fusion is None:
            return self.head(sentence)  # type: ignore[no-any-return]
        n = len(inputs) if isinstance(inputs, Tensor) else len(inputs.rows)
        if graphs is None:
            has_graph = torch.zeros(n, dtype=torch.bool, device=self.head.mean.device)
            pooled = torch.zeros(n, self.graphs.width, device=self.head.mean.device)
        else:
            has_graph = self._kept(graphs.has_graph)
            pooled = self.graphs(graphs, self.encoder.base.get_input_embeddings())
        vectors = self.fusion.graph_vectors(pooled, has_graph)
        if sentence is None:
            return self.head(vectors)  # type: ignore[no-any-return]
        outputs: Tensor = self.head(self.fusion(sentence, vectors, has_graph))
        if not aligned:
            return outputs
        return torch.stack([outputs.float(), nn.functional.cosine_similarity(sentence.float(), vectors.float(), dim=1)])

    def _kept(self, has_graph: Tensor) -> Tensor:
        """Graph dropout: some pairs train as if they had no graph."""
        share = self.architecture.graph.dropout if self.architecture.graph else 0.0
        if not self.training or not share:
            return has_graph
        return has_graph & (torch.rand(len(has_graph)) >= share).to(has_graph.device)

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
