"""Smatch: this project's exact solver against the ``smatch`` package with four restarts.

Dialogue-sized graphs are six consecutive gold sentences under one root, compared with a copy in which a share of the
concepts and roles was changed; single sentences are compared with their neighbours.  Both sides take the same pairs in
turn, several rounds.  ``peer below`` counts pairs where the package stays below the proved optimum.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mdialeval.graphs.penman_codec import encode, read_penman
from mdialeval.graphs.smatch import smatch
from mdialeval.records import Graph

Pair = tuple[Graph, Graph]


def joined(graphs: Sequence[Graph]) -> Graph:
    """Graphs under one ``multi-sentence`` root."""
    concepts, edges, constants = ["multi-sentence"], list[tuple[int, str, int]](), list[int]()
    for number, graph in enumerate(graphs, 1):
        shift = len(concepts)
        concepts += graph.concepts
        constants += [shift + c for c in graph.constants]
        edges.append((0, f"snt{number}", shift + graph.top))
        edges += [(shift + a, role, shift + b) for a, role, b in graph.edges]
    return Graph("", 0, tuple(concepts), tuple(edges), tuple(constants))


def changed(graph: Graph, rng: random.Random, share: float) -> Graph:
    """A copy with other node numbers, in which a share of the concepts and roles were replaced."""
    order = list(range(len(graph.concepts)))
    rng.shuffle(order)
    place = {old: new for new, old in enumerate(order)}
    words, roles = list(graph.concepts), [role for _, role, _ in graph.edges]
    constants = tuple(place[c] for c in graph.constants)
    concepts = [
        rng.choice(words).strip('"') if place[old] not in constants and rng.random() < share else words[old]
        for old in order
    ]
    edges = [(place[a], rng.choice(roles) if rng.random() < share else role, place[b]) for a, role, b in graph.edges]
    top = place[graph.top]
    return replace(graph, top=top, concepts=tuple(concepts), edges=tuple(dict.fromkeys(edges)), constants=constants)


def ours(pairs: Sequence[Pair]) -> list[int]:
    results = [smatch(a, b).counts for a, b in pairs]
    return [counts.matched if counts and counts.optimal else -1 for counts in results]


def installed_package() -> Any:
    """The ``smatch`` package: this file has its name and would be found first."""
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]
    return importlib.import_module("smatch")


def peer(package: Any, texts: Sequence[tuple[str, str]]) -> list[int]:
    package.iteration_num = 5  # one start by concepts and four random restarts
    matched = []
    for one, other in texts:
        matched.append(package.get_amr_match(one, other)[0])
        package.match_triple_dict.clear()
    return matched


def timed(call: Callable[[], list[int]]) -> tuple[float, list[int]]:
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--pairs", type=int, default=8, help="dialogue-sized pairs of each kind")
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    package = installed_package()
    graphs = [entry.graph for entry in read_penman(arguments.data / "amr" / "lpp-v1.6-train.txt")]
    dialogues = [joined(graphs[i : i + 6]) for i in range(0, len(graphs) - 5, 6)]
    dialogues = [d for d in dialogues if 40 <= len(d.concepts) <= 97][: arguments.pairs + 1]
    rng = random.Random(0)
    kinds = {
        "changed by a fifth": [(d, changed(d, rng, 0.2)) for d in dialogues[: arguments.pairs]],
        "changed by a half": [(d, changed(d, rng, 0.5)) for d in dialogues[: arguments.pairs]],
        "sentences": list(itertools.pairwise(graphs[:101])),
    }
    print(
        f"{'pairs':20} {'n':>4} {'nodes':>6} {'ours s/pair':>12} {'smatch s/pair':>14} {'ratio':>6} {'peer below':>11}"
    )
    table = {}
    for name, pairs in kinds.items():
        texts = [(encode(a, None), encode(b, None)) for a, b in pairs]
        times: list[tuple[float, float]] = []
        for _ in range(arguments.rounds):
            our_time, our_counts = timed(lambda pairs=pairs: ours(pairs))  # type: ignore[misc]
            peer_time, peer_counts = timed(lambda texts=texts: peer(package, texts))  # type: ignore[misc]
            times.append((our_time / len(pairs), peer_time / len(pairs)))
        mine, theirs = (statistics.median(t[side] for t in times) for side in (0, 1))
        below = sum(p < o for p, o in zip(peer_counts, our_counts, strict=True))
        above = sum(p > o for p, o in zip(peer_counts, our_counts, strict=True))
        nodes = statistics.median(len(a.concepts) for a, _ in pairs)
        print(f"{name:20} {len(pairs):4} {nodes:6.0f} {mine:12.4f} {theirs:14.4f} {theirs / mine:6.1f} {below:11}")
        table[name] = {"ours": mine, "peer": theirs, "ratio": theirs / mine, "peer_below": below, "peer_above": above}
    dialogue_sized = [table[name] for name in ("changed by a fifth", "changed by a half")]
    mine, theirs = (statistics.mean(row[side] for row in dialogue_sized) for side in ("ours", "peer"))
    print(
        json.dumps(
            {
                "name": "smatch",
                "ours": mine,
                "peer": theirs,
                "unit": "seconds a dialogue-sized pair, lower is better",
                "ratio": theirs / mine,
                "equal": all(row["peer_above"] == 0 for row in table.values()),
                "table": table,
            }
        )
    )


if __name__ == "__main__":
    main()
