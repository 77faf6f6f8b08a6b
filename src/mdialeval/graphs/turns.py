"""Which graphs belong to the turns of an example or a training pair, and reading them by turn id."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mdialeval.errors import DataError, nearest
from mdialeval.graphs.penman_codec import read_penman
from mdialeval.records import Example, Graph, TrainingPair, turn_id
from mdialeval.tables import read_parquet

log = logging.getLogger(__name__)

MOST_NAMES = 5
"""Ids that a message lists."""


class PairGraphs(NamedTuple):
    """The graphs of a pair's turns; None where a turn has none."""

    context: tuple[Graph | None, ...]
    response: Graph | None


def graphs_of(item: Example | TrainingPair, graphs: Mapping[str, Graph]) -> PairGraphs:
    """The graphs of an item's turns by turn id, those of the English original where the item is a translation.

    An item that is itself a turn of a dialogue (``d7#3``) finds its context among that dialogue's turns.
    """
    base, n = item.source_id or item.id, len(item.context)
    if turn_id(base, n) not in graphs and base in graphs:
        dialogue, _, place = base.rpartition("#")
        first = int(place) - n
        names = [turn_id(dialogue, first + i) for i in range(n + 1)]
    else:
        names = [turn_id(base, i) for i in range(n + 1)]
    found = [graphs.get(name) for name in names]
    return PairGraphs(tuple(found[:-1]), found[-1])


def say_if_none(examples: Sequence[Example], graphs: Mapping[str, Graph]) -> None:
    """Warn where not one turn of some examples is among the graphs: then the ids are of something else."""
    pairs = (graphs_of(example, graphs) for example in examples)
    if not examples or not graphs or any(g is not None for pair in pairs for g in (*pair.context, pair.response)):
        return
    wanted = turn_id(examples[0].source_id or examples[0].id, len(examples[0].context))
    log.warning(
        "none of the turns of %d examples has a graph: looked for ids such as %r; %s",
        len(examples),
        wanted,
        nearest(wanted, list(graphs)[:MOST_NAMES]),
    )


def read_graphs(path: str | Path) -> dict[str, Graph]:
    """Graphs by turn id.

    Raises:
        DataError: nothing is there, or a graph of a PENMAN file has no id or that of another one.
    """
    path = Path(path)
    if path.is_dir():
        shards = sorted(path.glob("part-*.parquet"))
        if not shards:
            raise DataError("holds no graphs: name the folder of a `parse` stage or a PENMAN file", path)
        return {graph.id: graph for shard in shards for graph in read_parquet(shard, Graph)}
    if not path.exists():
        raise DataError("no such file or folder; `mdialeval parse` makes graphs", path)
    found = {}
    for entry in read_penman(path):
        if not entry.graph.id:
            raise DataError("a graph without `# ::id`: it must be the turn's id, such as e7#0", path, entry.line)
        if entry.graph.id in found:
            raise DataError(f"the id {entry.graph.id!r} occurs twice: ids must be unique", path, entry.line, "::id")
        found[entry.graph.id] = entry.graph
    return found
