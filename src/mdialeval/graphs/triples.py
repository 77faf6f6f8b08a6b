"""The fastest graph measure: the overlap of two multisets of (concept, role, concept), without aligning variables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from mdialeval.graphs.smatch import SmatchCounts
from mdialeval.graphs.usim_view import lemma
from mdialeval.records import Graph

LabelledTriple = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class TripleOverlap:
    """How many triples two graphs share.

    Attributes:
        counts: with precision, recall and F1, each in [0, 1], higher is more alike.
        missing: triples of the source that the target lacks, sorted.
        added: triples of the target that the source lacks, sorted.
    """

    counts: SmatchCounts
    missing: tuple[LabelledTriple, ...]
    added: tuple[LabelledTriple, ...]


def concept_triples(graph: Graph) -> Counter[LabelledTriple]:
    """The edges as triples of concepts without senses, lower-cased, and one triple for the top; :wiki is left out.

    >>> sorted(concept_triples(Graph("", 0, ("go-02", "boy"), ((0, "ARG0", 1),))))
    [('', 'top', 'go'), ('go', 'arg0', 'boy')]
    """
    if not graph.concepts:
        return Counter()
    found = Counter(
        (lemma(graph.concepts[a]), role.lower(), lemma(graph.concepts[b]))
        for a, role, b in dict.fromkeys(graph.edges)
        if role != "wiki"
    )
    found["", "top", lemma(graph.concepts[graph.top])] += 1
    return found


def triple_overlap(source: Graph, target: Graph) -> TripleOverlap:
    """The overlap of the multisets of two graphs."""
    first, second = concept_triples(source), concept_triples(target)
    shared = (first & second).total()
    return TripleOverlap(
        SmatchCounts(shared, first.total(), second.total(), shared),
        tuple(sorted((first - second).elements())),
        tuple(sorted((second - first).elements())),
    )
