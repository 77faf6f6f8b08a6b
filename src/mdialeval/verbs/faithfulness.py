"""``faithfulness``: does a rewrite keep the meaning of its source?  Pairs or given graphs in, one row a pair out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mdialeval.errors import ConfigError, DataError, nearest
from mdialeval.graphs.faithfulness import MEASURES, Faithfulness, Measure, compare
from mdialeval.graphs.parsing import parse_texts
from mdialeval.graphs.penman_codec import read_penman
from mdialeval.graphs.protocol import PARSERS
from mdialeval.graphs.ucca_codec import Passage, read_ucca
from mdialeval.readers.opening import csv_rows, json_rows, tsv_rows
from mdialeval.records import Graph
from mdialeval.registry import create

ROWS = {".jsonl": json_rows, ".csv": csv_rows, ".tsv": tsv_rows}


def pairs_faithfulness(
    path: Path,
    measure: str = "smatch",
    *,
    source_column: str = "source",
    rewrite_column: str = "rewrite",
    parser: str = "dependency",
    options: Mapping[str, Any] | None = None,
) -> list[Faithfulness]:
    """Parse and compare English sentence pairs.

    Args:
        path: .jsonl, .csv or .tsv; a column ``id`` is used where there is one, else the line.
        measure: smatch, usim or triples.
        source_column, rewrite_column: their names.
        parser, options: an entry of the table of parsers.

    Raises:
        DataError: a missing column; no rows.
    """
    if path.suffix not in ROWS:
        raise ConfigError(f"{path}: pairs come as one of {', '.join(ROWS)}; graphs as PENMAN or UCCA XML by --graphs")
    rows = list(ROWS[path.suffix](path))
    if not rows:
        raise DataError("holds no pairs", path)
    for line, row in rows:
        for column in (source_column, rewrite_column):
            if row.get(column) is None:
                raise DataError(f"this column is missing; {nearest(column, map(str, row))}", path, line, column)
    texts = [str(row[column]) for column in (source_column, rewrite_column) for _, row in rows]
    graphs = parse_texts(create("graph parser", PARSERS, parser, options), texts)
    names = [str(row.get("id") or line) for line, row in rows]
    chosen = _measure(measure)
    halves = zip(names, graphs[: len(rows)], graphs[len(rows) :], strict=True)
    return [compare(replace(one, id=name), replace(other, id=name), chosen) for name, one, other in halves]


def graphs_faithfulness(source: Path, target: Path, measure: str = "smatch") -> list[Faithfulness]:
    """Compare given graphs: two PENMAN files aligned by id (by order where they have none), or two UCCA XML files.

    Raises:
        DataError: different numbers of graphs, or ids that do not match; names the first.
    """
    if source.suffix == ".xml":
        return [compare(_passage(source), _passage(target), "usim")]
    chosen = _measure(measure)
    ones, others = list(read_penman(source)), list(read_penman(target))
    if len(ones) != len(others):
        raise DataError(
            f"{len(ones)} graphs, but {len(others)} in {target.name}: they must be the same sentences", source
        )
    for one, other in zip(ones, others, strict=True):
        if one.graph.id and other.graph.id and one.graph.id != other.graph.id:
            raise DataError(
                f"{one.graph.id!r} meets {other.graph.id!r} of {target.name}: align the files", source, one.line
            )
    return [compare(a.graph, b.graph, chosen) for a, b in zip(ones, others, strict=True)]


def summary(rows: list[Faithfulness]) -> dict[str, Any]:
    """Counts, coverage and the mean F1 of the scored pairs; ``partial``: a graph lacks a part of its text."""
    scored = [row.f1 for row in rows if row.f1 is not None]
    statuses = sorted({row.status for row in rows})
    return {
        "rows": len(rows),
        "scored": len(scored),
        "mean_f1": sum(scored) / len(scored) if scored else None,
        "optimal": sum(row.optimal for row in rows if row.f1 is not None),
        "partial": sum(bool(row.reason) for row in rows if row.status == "ok"),
        "statuses": {status: sum(row.status == status for row in rows) for status in statuses},
    }


def _measure(name: str) -> Measure:
    for measure in MEASURES:
        if measure == name:
            return measure
    raise ConfigError(f"unknown measure {name!r}: {nearest(name, MEASURES)}")


def _passage(path: Path) -> Graph | Passage:
    if not path.exists():
        raise DataError("no such file", path)
    return read_ucca(path)
