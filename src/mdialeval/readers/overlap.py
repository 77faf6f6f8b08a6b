"""Overlap of two data sets: the same dialogue on both sides, by group, word for word, or nearly so.

Near duplicates are found by character n-grams.  A text is compared only with texts that share a good part of its
bottom-k sketch (Broder, 1997), so that large corpora stay feasible; every similarity reported is exact.
"""

from __future__ import annotations

import unicodedata
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from mdialeval.errors import ConfigError
from mdialeval.records import Dialogue, Example, turns_of

NGRAM = 4
SKETCH = 24
"""n-grams by which candidates are found."""
LONG = 40
"""n-grams that a text needs before it may count as contained in a longer one; ``Hello.`` is in every dialogue."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """One item of the first set and one of the second that are the same dialogue.

    Attributes:
        kind: ``group`` (same group or source, in any language), ``exact`` (same words) or ``near``.
        similarity: 1.0 for ``exact`` and ``group``; for ``near`` the share of common n-grams in [0, 1], of both texts
            (Jaccard) or, where one lies inside the other, of the shorter.
        text: how the first one begins.
    """

    kind: Literal["group", "exact", "near"]
    one: str
    other: str
    one_language: str
    other_language: str
    similarity: float
    text: str


@dataclass(frozen=True, slots=True)
class OverlapReport:
    """What two data sets share.

    Attributes:
        overlaps: in the order of the first set; an item of it meets at most one of the second per kind.
        one_items, other_items: sizes of the sets.
    """

    overlaps: tuple[Overlap, ...]
    one_items: int
    other_items: int

    @property
    def kinds(self) -> dict[str, int]:
        """Items of the first set by the strongest kind of overlap: group, then exact, then near."""
        strongest: dict[tuple[str, str], str] = {}
        for found in sorted(self.overlaps, key=lambda o: ("group", "exact", "near").index(o.kind)):
            strongest.setdefault((found.one, found.one_language), found.kind)
        return dict(Counter(strongest.values()))

    @property
    def share(self) -> float:
        """Share of the first set's items that overlap, in [0, 1]."""
        return sum(self.kinds.values()) / self.one_items if self.one_items else 0.0


def find_overlap(
    one: Iterable[Dialogue | Example], other: Iterable[Dialogue | Example], threshold: float = 0.8
) -> OverlapReport:
    """Items of two data sets that are the same dialogue, also where the language differs.

    An example is compared by its context (by its response where it has none), a dialogue by all turns.  Groups and
    sources are compared in all languages, texts word for word in all languages, nearly only in the same language.

    Args:
        one: the first set, such as the training data.
        other: the second set, such as the test data.
        threshold: least similarity of near duplicates, above 0 and at most 1.

    Raises:
        ConfigError: a threshold outside its range.
    """
    if not 0 < threshold <= 1:
        raise ConfigError(f"threshold: above 0 and at most 1, not {threshold!r}")
    left, right = [_Text(item) for item in one], [_Text(item) for item in other]
    found = [*_by_group(left, right), *_by_words(left, right), *_nearly(left, right, threshold)]
    place = {id(text): index for index, text in enumerate(left)}
    ordered = sorted(found, key=lambda pair: place[id(pair[0])])
    return OverlapReport(tuple(_overlap(*pair) for pair in ordered), len(left), len(right))


class _Text:
    """An item with what it is compared by."""

    __slots__ = ("grams", "item", "keys", "language", "words")

    def __init__(self, item: Dialogue | Example) -> None:
        self.item, self.language = item, item.language
        turns = item.context if isinstance(item, Example) and item.context else turns_of(item)
        self.words = plain_words(" ".join(turn.text for turn in turns))
        self.grams = {self.words[i : i + NGRAM] for i in range(max(1, len(self.words) - NGRAM + 1))}
        names = (item.group, item.source_id) if isinstance(item, Example) else (item.source_id or item.id,)
        self.keys = {name for name in names if name}


Found = tuple[_Text, _Text, Literal["group", "exact", "near"], float]


def plain_words(text: str) -> str:
    """A text without what does not make a difference: case, width, punctuation, blanks.

    >>> plain_words("Well ,  it 's FINE !") == plain_words("Well, it's fine.")
    True
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = "".join(c for c in folded if unicodedata.category(c)[0] in "LMN")
    return kept or "".join(folded.split())  # emoji and punctuation only


def _by_group(left: Sequence[_Text], right: Sequence[_Text]) -> Iterator[Found]:
    first: dict[str, _Text] = {}
    for text in right:
        for key in text.keys:
            first.setdefault(key, text)
    for text in left:
        match = next((first[key] for key in sorted(text.keys) if key in first), None)
        if match is not None:
            yield text, match, "group", 1.0


def _by_words(left: Sequence[_Text], right: Sequence[_Text]) -> Iterator[Found]:
    first: dict[str, _Text] = {}
    for text in right:
        first.setdefault(text.words, text)
    for text in left:
        if text.words in first:
            yield text, first[text.words], "exact", 1.0


def _nearly(left: Sequence[_Text], right: Sequence[_Text], threshold: float) -> Iterator[Found]:
    """The best near duplicate of each text; texts with an exact one are left out."""
    known = {text.words for text in right}
    candidates: dict[int, set[int]] = defaultdict(set)
    rest = [index for index, text in enumerate(left) if text.words not in known]
    for i, j in _sketched([left[index] for index in rest], right):
        candidates[rest[i]].add(j)
    for j, i in _sketched(right, [left[index] for index in rest]):
        candidates[rest[i]].add(j)
    for index in sorted(candidates):
        scored = [(_similarity(left[index], right[j]), -j) for j in candidates[index]]
        best, place = max(scored)
        if best >= threshold:
            yield left[index], right[-place], "near", best


def _sketched(sketches: Sequence[_Text], texts: Sequence[_Text]) -> Iterator[tuple[int, int]]:
    """Pairs (i, j) in one language where text j holds at least half of the sketch of text i."""
    index: dict[tuple[str, str], list[int]] = defaultdict(list)
    sizes = []
    for i, text in enumerate(sketches):
        sketch = sorted(text.grams, key=lambda gram: (zlib.crc32(gram.encode()), gram))[:SKETCH]
        sizes.append(len(sketch))
        for gram in sketch:
            index[text.language, gram].append(i)
    for j, text in enumerate(texts):
        shared = Counter(i for gram in text.grams for i in index.get((text.language, gram), ()))
        yield from ((i, j) for i, count in shared.items() if 2 * count >= sizes[i])


def _similarity(one: _Text, other: _Text) -> float:
    common, shorter = len(one.grams & other.grams), min(len(one.grams), len(other.grams))
    return common / shorter if shorter >= LONG else common / len(one.grams | other.grams)


def _overlap(one: _Text, other: _Text, kind: Literal["group", "exact", "near"], similarity: float) -> Overlap:
    text = " / ".join(turn.text for turn in turns_of(one.item))
    return Overlap(
        kind, one.item.id, other.item.id, one.language, other.language, similarity, text[:97] + "..." * (len(text) > 97)
    )
