"""Random draws that belong to a thing, not to its place: the seed and a name give the generator."""

from __future__ import annotations

import hashlib
import random
import unicodedata


def draw(seed: int, *parts: object) -> random.Random:
    """A random generator that depends only on the seed and the names given.

    >>> draw(1, "a").random() == draw(1, "a").random() != draw(2, "a").random()
    True
    """
    key = "\x1f".join([str(seed), *map(str, parts)])
    return random.Random(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest())


def normal(text: str) -> str:
    """A text for comparison: letters, digits and symbols, without case, blanks and punctuation.

    >>> normal("That ' s OK !") == normal("that's ok")
    True
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = "".join(c for c in folded if not c.isspace() and not unicodedata.category(c).startswith("P"))
    return kept or "".join(folded.split())
