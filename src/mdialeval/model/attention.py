"""Where an evaluator with a graph branch looks, for one example: its tokens and its graph's nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from mdialeval.errors import ConfigError, DataError
from mdialeval.graphs.turns import graphs_of
from mdialeval.model.batches import collate
from mdialeval.model.evaluator import Evaluator
from mdialeval.model.graph_input import collate_graphs, encode_graphs
from mdialeval.model.markup import encode_pairs
from mdialeval.records import Example, Graph

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float32]]


class AttentionMaps(NamedTuple):
    """Attention of the last layers, the mean over the heads; every row sums to 1.

    Attributes:
        tokens: T tokens of the pair as the encoder reads them.
        sentence: (T, T); who (row) looks at whom (column).
        nodes: N labels of the graph's nodes.
        graph: (N, N).
    """

    tokens: tuple[str, ...]
    sentence: Matrix
    nodes: tuple[str, ...]
    graph: Matrix


@torch.no_grad()
def attention_maps(evaluator: Evaluator, example: Example, graphs: Mapping[str, Graph]) -> AttentionMaps:
    """The attention maps of one example.

    Args:
        evaluator: with a graph branch.
        example: with a response.
        graphs: turn id -> graph.

    Raises:
        ConfigError: the evaluator has no graph branch.
        DataError: the example has no response, or none of its turns has a graph.
    """
    network, tokenizer = evaluator.network, evaluator.tokenizer
    branch = network.architecture.graph
    if branch is None or network.graphs is None:
        raise ConfigError("attention maps of graphs need an evaluator with a graph branch (train.graph.use)")
    if example.response is None:
        raise DataError(f"example {example.id!r} has no response to look at", field="response")
    (drawn,) = encode_graphs(tokenizer, [graphs_of(example, graphs)], branch.join)
    if not drawn.has_graph:
        raise DataError(f"none of the turns of example {example.id!r} has a graph", field="graphs")
    row = encode_pairs(tokenizer, [example], evaluator.settings.markup)
    start, pad, how = tokenizer.cls_token_id, tokenizer.pad_token_id, network.architecture.attention
    batch = collate(row, [[0]], start, pad, how).to(evaluator.device)
    graph_batch = collate_graphs([drawn], pad).to(evaluator.device)
    sentence = _sentence_attention(network.encoder, batch)
    attention = network.graphs.nodes(graph_batch, network.encoder.base.get_input_embeddings())[1][-1]
    n = len(drawn.segment)
    return AttentionMaps(
        tuple(tokenizer.convert_ids_to_tokens(batch.input_ids[0].tolist())),
        sentence[0].mean(0).float().cpu().numpy(),
        tuple(tokenizer.decode(list(pieces)) for pieces in drawn.pieces),
        attention[0, :, :n, :n].mean(0).float().cpu().numpy(),
    )


def _sentence_attention(encoder: Any, batch: Any) -> torch.Tensor:
    """(S, H, T, T) of the last layer; only the plain implementation of attention tells its weights."""
    before = encoder.base.config._attn_implementation
    encoder.base.set_attn_implementation("eager")
    try:
        output = encoder.base(**encoder.inputs(batch), output_attentions=True)
    finally:
        encoder.base.set_attn_implementation(before)
    last: torch.Tensor = output.attentions[-1]
    return last
