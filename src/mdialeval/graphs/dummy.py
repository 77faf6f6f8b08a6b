"""A parser for tests, documentation and notebooks: words become a graph by a rule, without any model."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Sequence

from mdialeval.graphs.penman_codec import EMPTY_CONCEPT
from mdialeval.records import Graph

_WORD = re.compile(r"[\w']+")


class DummyParser:
    """The first word is the top, every further word hangs below the word before it; a repeated word is one node.

    Args:
        max_words: a longer text is cut and gets status ``truncated``.
    """

    def __init__(self, max_words: int = 100) -> None:
        self.max_words = max_words
        self.identity = f"dummy:{max_words}"

    def parse(self, texts: Sequence[str]) -> list[Graph]:
        """One graph a text; a text without a letter or digit is ``empty``."""
        return [self._graph(text) for text in texts]

    def _graph(self, text: str) -> Graph:
        words = [w for w in _WORD.findall(unicodedata.normalize("NFKC", text).lower()) if w.strip("_'")]
        if not words:
            return Graph("", 0, (EMPTY_CONCEPT,), (), status="empty", detail="the text has no words")
        kept = words[: self.max_words]
        concepts = list(dict.fromkeys(kept))
        index = {word: i for i, word in enumerate(concepts)}
        edges = dict.fromkeys(
            (index[a], f"ARG{i % 3}", index[b]) for i, (a, b) in enumerate(itertools.pairwise(kept)) if a != b
        )
        if len(kept) < len(words):
            detail = f"{len(words) - len(kept)} of {len(words)} words cut"
            return Graph("", 0, tuple(concepts), tuple(edges), status="truncated", detail=detail)
        return Graph("", 0, tuple(concepts), tuple(edges))
