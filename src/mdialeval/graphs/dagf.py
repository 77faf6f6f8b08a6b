"""DAG-F: agreement of two UCCA annotations of one text, unit by unit (as used by Choshen and Abend, NAACL 2018).

Before comparison both are normalised: a centre that is the only centre of its parent and has itself exactly one
centre is dissolved into the parent, and functional units (F) that both annotations have are moved below the root,
since where they hang is arbitrary.  Units are then the sets of words that some unit covers, punctuation left out; two
match where the sets are equal and a category agrees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from mdialeval.graphs.ucca_codec import Passage
from mdialeval.graphs.usim import canonical

Mode = Literal["labelled", "weak_labelled", "unlabelled"]
MODES: tuple[Mode, ...] = ("labelled", "weak_labelled", "unlabelled")
Yields = dict[frozenset[int], frozenset[str]]


@dataclass(frozen=True, slots=True)
class DagF:
    """Counts and scores in one mode; every score in [0, 1], higher is better, None where nothing can be counted.

    Attributes:
        mode: ``labelled`` (a category is shared), ``weak_labelled`` (up to P=S, H=C, N=L, F=R), ``unlabelled``.
        matched, guessed, reference: units matched, of the guess, of the reference.
    """

    mode: Mode
    matched: int
    guessed: int
    reference: int
    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(slots=True)
class _Tree:
    """Primary edges of a passage while it is normalised: parent and category a unit, unit above each word."""

    root: int
    parent: dict[int, int]
    category: dict[int, str]
    word: dict[int, int]

    def dissolve_centres(self) -> None:
        centres = Counter(self.parent[unit] for unit, category in self.category.items() if category == "C")
        chosen = [
            unit
            for unit, category in self.category.items()
            if category == "C" and centres[self.parent[unit]] == 1 and centres[unit] == 1
        ]
        for unit in chosen:
            above = self.parent.pop(unit)
            del self.category[unit]
            for lower in (self.parent, self.word):
                lower.update({key: above for key, value in lower.items() if value == unit})

    def yields(self) -> dict[int, frozenset[int]]:
        below: dict[int, set[int]] = {unit: set() for unit in self.category}
        for word, unit in self.word.items():
            while unit != self.root:
                below[unit].add(word)
                unit = self.parent[unit]
        return {unit: frozenset(words) for unit, words in below.items()}


def _tree(passage: Passage) -> _Tree:
    if passage.status != "ok":
        raise ValueError(f"passage {passage.id!r} is {passage.status}: {passage.detail}")
    kind = [unit.kind for unit in passage.units]
    primary = [e for e in passage.edges if not e.remote and kind[e.parent] != "LKG"]
    lower = [e for e in primary if not e.terminal and kind[e.child] == "FN" and not passage.units[e.child].implicit]
    word = {
        e.child: e.parent
        for e in primary
        if e.terminal and kind[e.parent] == "FN" and not passage.terminals[e.child].punctuation
    }
    return _Tree(passage.root, {e.child: e.parent for e in lower}, {e.child: e.category for e in lower}, word)


def _lift_common_functions(first: _Tree, second: _Tree) -> None:
    functions = [
        {words: unit for unit, words in tree.yields().items() if tree.category[unit] == "F"} for tree in (first, second)
    ]
    for words in functions[0].keys() & functions[1].keys():
        if words:
            for tree, found in zip((first, second), functions, strict=True):
                tree.parent[found[words]] = tree.root


def _by_yield(tree: _Tree) -> Yields:
    found: dict[frozenset[int], set[str]] = {}
    for unit, words in tree.yields().items():
        found.setdefault(words, set()).add(tree.category[unit])
    return {words: frozenset(categories) for words, categories in found.items()}


def dag_f(pairs: Iterable[tuple[Passage, Passage]]) -> dict[Mode, DagF]:
    """DAG-F of (guess, reference) pairs over the same words, micro-averaged, in all three modes.

    Raises:
        ValueError: a pair with different numbers of words, or a passage that is not ``ok``.
    """
    matched = dict.fromkeys(MODES, 0)
    guessed = reference = 0
    for guess, gold in pairs:
        trees = _tree(guess), _tree(gold)
        if len(guess.terminals) != len(gold.terminals):
            raise ValueError(
                f"DAG-F compares annotations of one text: {guess.id!r} has {len(guess.terminals)} words, "
                f"{gold.id!r} {len(gold.terminals)}; use USim for different texts"
            )
        for tree in trees:
            tree.dissolve_centres()
        _lift_common_functions(*trees)
        first, second = _by_yield(trees[0]), _by_yield(trees[1])
        guessed, reference = guessed + len(first), reference + len(second)
        for words in first.keys() & second.keys():
            matched["unlabelled"] += 1
            matched["labelled"] += bool(first[words] & second[words])
            matched["weak_labelled"] += bool(canonical(first[words]) & canonical(second[words]))
    return {mode: _scores(mode, matched[mode], guessed, reference) for mode in MODES}


def _scores(mode: Mode, matched: int, guessed: int, reference: int) -> DagF:
    f1 = 2 * matched / (guessed + reference) if guessed + reference else None
    return DagF(
        mode,
        matched,
        guessed,
        reference,
        matched / guessed if guessed else None,
        matched / reference if reference else None,
        f1,
    )
