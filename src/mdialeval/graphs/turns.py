"""Which graphs belong to the turns of an example or a training pair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mdialeval.records import Example, Graph, TrainingPair, turn_id


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
