"""What the judge may be told beside the dialogue: an evaluator's probability, and AMR graphs of the English pivot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from mdialeval.errors import ConfigError, DataError, nearest
from mdialeval.graphs.penman_codec import encode
from mdialeval.graphs.turns import read_graphs
from mdialeval.llm.blocks import Hints
from mdialeval.readers.opening import json_rows
from mdialeval.records import Example, Graph, Prediction, turn_id
from mdialeval.tables import read_parquet

GraphFormat = Literal["penman", "linearised"]
Key = tuple[str, str]  # example id, language

_NODE = re.compile(r"\(([^\s()/]+) / ([^\s()]+)")


class HintTable:
    """Looks the hints of an example up.

    Args:
        evaluator: an evaluator's predictions (``.jsonl``, ``.parquet`` or the folder of a ``score`` stage, scores in
            [0, 1]), or (example id, language) to probability.
        graphs: a PENMAN file whose ``::id`` are turn ids (``item#turn``) or example ids of the English side, the folder
            of a ``parse`` stage, or such an id to the text of a graph.
        graph_format: how graphs of a file are written into the prompt.

    Raises:
        ConfigError: no such file, or an unknown ending or format.
        DataError: a score that is no probability.
    """

    def __init__(
        self,
        evaluator: str | Path | Mapping[Key, float] | None = None,
        graphs: str | Path | Mapping[str, str] | None = None,
        graph_format: GraphFormat = "penman",
    ) -> None:
        if graph_format not in ("penman", "linearised"):
            raise ConfigError(f"scorer 'llm': graph_format is penman or linearised, not {graph_format!r}")
        self._given = evaluator if isinstance(evaluator, Mapping) else None
        self._predicted: dict[Key, dict[str, float]] = {}
        if evaluator is not None and not isinstance(evaluator, Mapping):
            self._predicted = _probabilities(_there(evaluator))
        self._graphs: Mapping[str, str] = {}
        if isinstance(graphs, Mapping):
            self._graphs = graphs
        elif graphs is not None:
            found = read_graphs(_there(graphs))
            self._graphs = {key: graph_text(g, graph_format) for key, g in found.items() if g.status == "ok"}

    def of(self, example: Example, criterion: str, drop: int) -> Hints:
        """The hints for one question; an evaluator of the criterion itself comes before the only one there is."""
        key = (example.id, example.language)
        if self._given is not None:
            probability = self._given.get(key)
        else:
            found = self._predicted.get(key, {})
            only = next(iter(found.values())) if len(found) == 1 else None
            probability = found.get(criterion, only)
        return Hints(probability, self._graph(example, drop))

    def _graph(self, example: Example, drop: int) -> str | None:
        """The graphs of the turns that are shown, oldest first, or the one of the whole example."""
        pivot = example.source_id or example.id
        n_turns = len(example.context) + (example.response is not None)
        ids = [turn_id(pivot, turn) for turn in range(drop, n_turns)]
        texts = [self._graphs[each] for each in ids if each in self._graphs]
        return "\n".join(texts) if texts else self._graphs.get(pivot)


def graph_text(graph: Graph, form: GraphFormat) -> str:
    """A graph as text: PENMAN with indentation, or one line without variables.

    In the linearised form a concept that is mentioned again is named again.

    >>> graph = Graph("g", 0, ("want-01", "boy", "go-02"), ((0, "ARG0", 1), (0, "ARG1", 2), (2, "ARG0", 1)))
    >>> graph_text(graph, "linearised")
    '(want-01 :ARG0 (boy) :ARG1 (go-02 :ARG0 boy))'
    """
    if form == "penman":
        return encode(graph)
    text = encode(graph, indent=None)
    concepts = dict(_NODE.findall(text))
    text = _NODE.sub(lambda m: f"({m.group(2)}", text)
    return re.sub(r"(:\S+ )([^\s()]+)", lambda m: f"{m.group(1)}{concepts.get(m.group(2), m.group(2))}", text)


def _probabilities(path: Path) -> dict[Key, dict[str, float]]:
    table: dict[Key, dict[str, float]] = {}
    for line, row in _rows(path):
        for column in ("example_id", "language", "dimension", "score"):
            if column not in row:
                raise DataError(f"no column {column!r}: {nearest(column, row)}", path, line)
        score = row["score"]
        if score is None:
            continue
        if isinstance(score, bool) or not isinstance(score, (int, float)) or not 0 <= score <= 1:
            raise DataError(f"{score!r} is no probability: give scores in [0, 1]", path, line, "score")
        table.setdefault((str(row["example_id"]), str(row["language"])), {})[str(row["dimension"])] = float(score)
    return table


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    if path.is_dir():
        shards = sorted(path.glob("part-*.parquet"))
        if not shards:
            raise ConfigError(f"scorer 'llm': {path} holds no predictions: name the folder of a score stage")
        rows = (row for shard in shards for row in read_parquet(shard, Prediction))
        yield from ((line, asdict(row)) for line, row in enumerate(rows, start=1))
    elif path.suffix == ".jsonl":
        yield from json_rows(path)
    elif path.suffix == ".parquet":
        yield from ((line, asdict(row)) for line, row in enumerate(read_parquet(path, Prediction), start=1))
    else:
        raise ConfigError(f"scorer 'llm': {path.name} is neither .jsonl nor .parquet")


def _there(path: str | Path) -> Path:
    path = Path(path).expanduser()
    if not path.exists():
        raise ConfigError(f"scorer 'llm': no file {path} (working folder: {Path.cwd()})")
    return path
