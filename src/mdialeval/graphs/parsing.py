"""Texts to graphs through a parser and a cache: distinct texts once, failures never remembered."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mdialeval.cache import Cache
from mdialeval.graphs.protocol import GraphParser
from mdialeval.records import Graph

BATCH = 64
"""Texts a call of a parser that does not say what it likes: what a killed run loses at most."""


def parse_texts(
    parser: GraphParser, texts: Sequence[str], cache: Cache | None = None, batch_size: int | None = None
) -> list[Graph]:
    """Graphs of texts in order: distinct texts once, from the cache where it has them; failures are never cached.

    Args:
        parser: asked for what the cache does not know.
        texts: in any number, repeats allowed.
        cache: of this parser, or None.
        batch_size: texts a call and a transaction; the parser's own ``batch_size`` where None.
    """
    size = batch_size if batch_size is not None else int(getattr(parser, "batch_size", BATCH))
    distinct = list(dict.fromkeys(texts))
    known = cache.get(distinct) if cache else [None] * len(distinct)
    found = {text: _decode(value) for text, value in zip(distinct, known, strict=True) if value is not None}
    missing = [text for text in distinct if text not in found]
    for start in range(0, len(missing), size):
        batch = missing[start : start + size]
        fresh = dict(zip(batch, parser.parse(batch), strict=True))
        found.update(fresh)
        if cache:
            cache.put([(text, _encode(g)) for text, g in fresh.items() if g.status != "failed"])
    return [found[text] for text in texts]


def _encode(graph: Graph) -> str:
    values = [graph.top, graph.concepts, graph.edges, graph.constants, graph.status, graph.detail]
    return json.dumps(values, ensure_ascii=False)


def _decode(value: str) -> Graph:
    top, concepts, edges, constants, status, detail = json.loads(value)
    triples = tuple((source, role, target) for source, role, target in edges)
    return Graph("", top, tuple(concepts), triples, tuple(constants), status, detail)
