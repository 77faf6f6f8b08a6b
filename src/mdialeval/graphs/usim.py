"""USim: how much of the semantic structure of one text another one keeps (Choshen and Abend, NAACL 2018).

Units are aligned by the overlap of their yields through a token alignment; an aligned pair matches where incoming
labels agree.  As coded by its authors by default: many units may align to one, so precision and recall are not counts
of one matching, and the two directions are aligned separately.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mdialeval.graphs.ucca_codec import Passage, glued_tokens
from mdialeval.graphs.usim_align import UNALIGNED, AlignmentMethod, align_tokens, inverted
from mdialeval.graphs.usim_view import View, from_amr, from_passage
from mdialeval.records import Graph

UsimStatus = Literal["ok", "empty", "failed", "invalid", "no_units"]
EQUIVALENT: Mapping[str, str] = {"P": "S", "H": "C", "N": "L", "F": "R"}
"""UCCA categories that count as one: process and state, parallel scene and centre, connector and linker, function and
relator."""
_CANONICAL = {**{category: category for category in EQUIVALENT}, **{s: p for p, s in EQUIVALENT.items()}}


@dataclass(frozen=True, slots=True)
class UnitEdge:
    """A labelled unit, for explanations: its incoming labels and what it covers."""

    labels: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Usim:
    """USim of a pair: every number in [0, 1], higher is more alike; None where ``status`` is not ``ok`` or ``empty``.

    Attributes:
        precision: share of the target's units with a matching source unit.
        recall: share of the source's units with a matching target unit.
        f1: harmonic mean of both.
        source_units, target_units: how many units were compared.
        source_matched, target_matched: how many of them found a match.
        missing: source units without a match in the target.
        added: target units without a match in the source.
        status: ``empty`` where a side has no text: both empty 1, one empty 0, by the measure's convention; ``no_units``
            where neither side has a unit that can be compared.
        reason: why there is no score, or what to know about the score (punctuation glued on one side only).
    """

    precision: float | None
    recall: float | None
    f1: float | None
    source_units: int = 0
    target_units: int = 0
    source_matched: int = 0
    target_matched: int = 0
    missing: tuple[UnitEdge, ...] = ()
    added: tuple[UnitEdge, ...] = ()
    status: UsimStatus = "ok"
    reason: str = ""


def usim(
    source: Passage | Graph,
    target: Passage | Graph,
    *,
    alignment: AlignmentMethod | None = None,
    all_units: bool | None = None,
    equivalences: bool = True,
    token_map: Sequence[int] | None = None,
) -> Usim:
    """USim between two UCCA passages or two AMR graphs.

    Args:
        alignment: how tokens are aligned; default ``published`` over UCCA and ``lemma`` over AMR.
        all_units: compare single-token units too; default False over UCCA (as published) and True over AMR.
        equivalences: whether P=S, H=C, N=L and F=R (UCCA only).
        token_map: a given alignment, source position -> target position or -1, instead of a computed one.

    Raises:
        TypeError: a passage against a graph.
        ValueError: a token map of another length than the source.
    """
    problem = _unscored(source, target)
    if problem is not None:
        return problem
    note = ""
    if isinstance(source, Passage) and isinstance(target, Passage):
        note = _glued_note(source, target)
        a, b = (from_passage(side, bool(all_units)) for side in (source, target))
        method: AlignmentMethod = alignment or "published"
    elif isinstance(source, Graph) and isinstance(target, Graph):
        a, b = (from_amr(side, all_units is not False) for side in (source, target))
        method = alignment or "lemma"
        equivalences = False
    else:
        raise TypeError("USim compares two passages or two graphs, not one of each")
    mapping = tuple(token_map) if token_map is not None else align_tokens(a.tokens, b.tokens, method, a.ends, b.ends)
    if len(mapping) != len(a.tokens):
        raise ValueError(f"token_map has {len(mapping)} entries for {len(a.tokens)} source tokens")
    result = compare_views(a, b, mapping, equivalences)
    return replace(result, reason=note) if note and result.status == "ok" else result


def _glued_note(source: Passage, target: Passage) -> str:
    """What a reader of the score should know where only one side has its punctuation split from the words."""
    glued = glued_tokens(source), glued_tokens(target)
    if (glued[0] == 0) == (glued[1] == 0):
        return ""
    side, count = ("source", glued[0]) if glued[0] else ("target", glued[1])
    return f"{count} words of the {side} carry punctuation, none of the other side: tokenise both texts alike"


def _unscored(source: Passage | Graph, target: Passage | Graph) -> Usim | None:
    """The result of a pair of which a side has no graph to compare."""
    for name, side in (("source", source), ("target", target)):
        if side.status in ("failed", "invalid"):
            status: UsimStatus = "failed" if side.status == "failed" else "invalid"
            return Usim(None, None, None, status=status, reason=f"{name} graph: {side.detail or side.status}")
    empty = [side.status == "empty" for side in (source, target)]
    if all(empty):
        return Usim(1.0, 1.0, 1.0, status="empty", reason="both texts are empty: 1 by convention")
    if any(empty):
        which = "source" if empty[0] else "target"
        return Usim(0.0, 0.0, 0.0, status="empty", reason=f"the {which} text is empty: 0 by convention")
    return None


def compare_views(source: View, target: View, mapping: Sequence[int], equivalences: bool = True) -> Usim:
    """USim of two prepared sides under a token alignment."""
    n1, n2 = len(source.yields), len(target.yields)
    if n1 == 0 and n2 == 0:
        return Usim(None, None, None, status="no_units", reason="neither side has a unit that can be compared")
    back = inverted(mapping, len(target.tokens))
    labels1, labels2 = ([canonical(u) if equivalences else u for u in side.labels] for side in (source, target))
    hits1 = _matches(source.yields, target.yields, labels1, labels2, mapping)
    hits2 = _matches(target.yields, source.yields, labels2, labels1, back)
    c1, c2 = sum(hits1), sum(hits2)
    return Usim(
        c2 / n2 if n2 else 0.0,
        c1 / n1 if n1 else 0.0,
        two_sided_f(c1, c2, n1, n2),
        n1,
        n2,
        c1,
        c2,
        _unmatched(source, hits1),
        _unmatched(target, hits2),
    )


def canonical(labels: frozenset[str]) -> frozenset[str]:
    """Labels with equivalent UCCA categories made equal.

    >>> sorted(canonical(frozenset("SA")))
    ['A', 'P']
    """
    return frozenset(_CANONICAL.get(label, label) for label in labels)


def two_sided_f(c1: int, c2: int, n1: int, n2: int) -> float:
    """Harmonic mean of c1/n1 and c2/n2; 0 where a side has no units or nothing matched.

    >>> round(two_sided_f(3, 4, 5, 6), 5)
    0.63158
    """
    if not (n1 and n2 and c1 and c2):
        return 0.0
    recall, precision = c1 / n1, c2 / n2
    return 2 * precision * recall / (precision + recall)


def _matches(
    yields1: Sequence[frozenset[int]],
    yields2: Sequence[frozenset[int]],
    labels1: Sequence[frozenset[str]],
    labels2: Sequence[frozenset[str]],
    mapping: Sequence[int],
) -> list[bool]:
    """For each unit whether the most similar unit of the other side (ties: one whose labels agree) shares a label.

    Similarity: harmonic mean of the share of the one's tokens that map into the other, and the other way round.  Since
    the map is one-to-one, both counts are the size of the same set, and the mean is twice it over the sum of the sizes.
    """
    units_at: dict[int, list[int]] = {}
    for unit, positions in enumerate(yields2):
        for position in positions:
            units_at.setdefault(position, []).append(unit)
    found = []
    for positions, labels in zip(yields1, labels1, strict=True):
        shared: dict[int, int] = {}
        for position in positions:
            image = mapping[position]
            if image != UNALIGNED:
                for unit in units_at.get(image, ()):
                    shared[unit] = shared.get(unit, 0) + 1
        similarity = {unit: count / (len(positions) + len(yields2[unit])) for unit, count in shared.items()}
        best = max(similarity.values(), default=0.0)
        found.append(any(s == best and labels & labels2[unit] for unit, s in similarity.items()))
    return found


def _unmatched(side: View, hits: Sequence[bool]) -> tuple[UnitEdge, ...]:
    return tuple(
        UnitEdge(tuple(sorted(labels)), name)
        for labels, name, hit in zip(side.labels, side.names, hits, strict=True)
        if not hit
    )
