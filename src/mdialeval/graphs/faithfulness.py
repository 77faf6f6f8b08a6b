"""Whether a second text keeps the meaning of a first one, by their graphs: corrections, paraphrases, back-translations.

A complement to surface measures: it sees who did what to whom, negation and names, and it explains itself by the edges
that are missing and added.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from mdialeval.graphs.smatch import DEFAULT_LIMITS, SmatchCounts, smatch
from mdialeval.graphs.smatch_solve import Limits
from mdialeval.graphs.triples import triple_overlap
from mdialeval.graphs.ucca_codec import Passage
from mdialeval.graphs.usim import UnitEdge, usim
from mdialeval.graphs.validate import validated
from mdialeval.records import Graph

Measure = Literal["smatch", "usim", "triples"]
MEASURES: tuple[Measure, ...] = ("smatch", "usim", "triples")
FaithfulnessStatus = Literal["ok", "empty", "failed", "truncated", "invalid", "no_units"]

_OPERAND = re.compile(r"op\d+")


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """How far a target keeps the semantic structure of its source.

    Attributes:
        id: of the source graph.
        precision, recall, f1: in [0, 1], higher is more faithful; low precision: something was added, low recall:
            something was lost.  None where ``status`` is not ``ok``, but for USim of empty texts (see ``Usim``).
        missing: edges of the source that the target lacks, as ``concept :role concept``.
        added: edges of the target that the source lacks.
        upper_bound: F1 is at most this; equal to ``f1`` where ``optimal``.
        reason: why there is no score; with one, what a graph lacks of its text (it was cut, or its parser fell back).
    """

    id: str
    measure: Measure
    precision: float | None
    recall: float | None
    f1: float | None
    missing: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    upper_bound: float | None = None
    optimal: bool = True
    status: FaithfulnessStatus = "ok"
    reason: str = ""


def compare(
    source: Graph | Passage, target: Graph | Passage, measure: Measure = "smatch", limits: Limits = DEFAULT_LIMITS
) -> Faithfulness:
    """Compare two graphs (or, by USim, two UCCA passages).

    The order of the operands of ``and`` and ``or`` does not count.  A pair with a graph that is missing, failed or
    invalid gets that status and no score.

    Raises:
        ValueError: an unknown measure.
        TypeError: a passage with another measure than USim, or a passage against a graph.
    """
    if measure not in MEASURES:
        raise ValueError(f"unknown measure {measure!r}: one of {', '.join(MEASURES)}")
    if isinstance(source, Passage) or isinstance(target, Passage):
        if measure != "usim":
            raise TypeError(f"{measure} compares graphs; UCCA passages are compared by usim")
        return _by_usim(source, target)
    source, target = unordered(validated(source)), unordered(validated(target))
    found = _compared(source, target, measure, limits)
    lacking = [f"{side} graph: {g.detail}" for side, g in (("source", source), ("target", target)) if g.detail]
    return replace(found, reason="; ".join(lacking)) if found.status == "ok" and lacking else found


def _compared(source: Graph, target: Graph, measure: Measure, limits: Limits) -> Faithfulness:
    if measure == "usim":
        return _by_usim(source, target)
    if measure == "smatch":
        result = smatch(source, target, limits=limits)
        if result.counts is None:
            return _unscored(source.id, measure, result.status, result.reason)
        return _scored(source.id, measure, result.counts, result.missing, result.added)
    for name, graph in (("source", source), ("target", target)):
        if graph.status not in ("ok", "truncated"):
            return _unscored(source.id, measure, graph.status, f"{name} graph: {graph.detail or graph.status}")
    overlap = triple_overlap(source, target)
    return _scored(source.id, measure, overlap.counts, overlap.missing, overlap.added)


def _unscored(id: str, measure: Measure, status: FaithfulnessStatus, reason: str) -> Faithfulness:
    return Faithfulness(id, measure, None, None, None, status=status, reason=reason)


def _scored(
    id: str,
    measure: Measure,
    counts: SmatchCounts,
    missing: Iterable[tuple[str, str, str]],
    added: Iterable[tuple[str, str, str]],
) -> Faithfulness:
    return Faithfulness(
        id,
        measure,
        counts.precision,
        counts.recall,
        counts.f1,
        tuple(_edge(*triple) for triple in missing),
        tuple(_edge(*triple) for triple in added),
        counts.f1_upper_bound,
        counts.optimal,
    )


def _by_usim(source: Graph | Passage, target: Graph | Passage) -> Faithfulness:
    result = usim(source, target)
    return Faithfulness(
        source.id,
        "usim",
        result.precision,
        result.recall,
        result.f1,
        tuple(map(_unit, result.missing)),
        tuple(map(_unit, result.added)),
        result.f1,
        status=result.status,
        reason=result.reason,
    )


def _edge(source: str, role: str, target: str) -> str:
    if role == "instance":
        return target
    return f"{source} :{role} {target}".strip()


def _unit(unit: UnitEdge) -> str:
    return f"{'/'.join(unit.labels)}: {unit.text}"


def unordered(graph: Graph) -> Graph:
    """The graph with one role for all operands of ``and`` and ``or``: their order says nothing about the meaning.

    >>> unordered(Graph("", 0, ("and", "a", "b"), ((0, "op1", 1), (0, "op2", 2)))).edges
    ((0, 'op', 1), (0, 'op', 2))
    """
    if not {"and", "or"} & set(graph.concepts):
        return graph
    return replace(
        graph,
        edges=tuple(
            (a, "op" if graph.concepts[a] in ("and", "or") and _OPERAND.fullmatch(role) else role, b)
            for a, role, b in graph.edges
        ),
    )
