"""A translation engine that translates nothing, deterministically: for tests, documents and dry runs."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence

import regex

from mdialeval.errors import BackendError
from mdialeval.languages import language
from mdialeval.registry import Asset

_WORD = regex.compile(r"XQ\d+X|[A-Za-z]+")
_FIRST = {
    "Hans": 0x4E00,
    "Hant": 0x4E00,
    "Jpan": 0x3042,
    "Kore": 0xAC00,
    "Cyrl": 0x0430,
    "Grek": 0x03B1,
    "Arab": 0x0628,
    "Hebr": 0x05D0,
    "Deva": 0x0905,
    "Thai": 0x0E01,
    "Armn": 0x0561,
    "Geor": 0x10D0,
}


class Dummy:
    """Turns every Latin word by 13 letters and appends the target's code; other scripts get their own letters.

    >>> Dummy().translate(["Hello, XQ1X 7!"], "en", "pt")
    ['Uryybpt, XQ1X 7!']

    Args:
        fail_on: a sentence that contains this text makes the call fail, to try what happens then.
    """

    placeholders = True

    def __init__(self, fail_on: str = "") -> None:
        self.fail_on = fail_on
        self.identity = "dummy/1"

    @classmethod
    def assets(cls, **_: object) -> list[Asset]:
        """Nothing is needed."""
        return []

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """See the class; ``BackendError`` where ``fail_on`` occurs."""
        if self.fail_on and any(self.fail_on in text for text in texts):
            raise BackendError("dummy", f"told to fail on {self.fail_on!r}")
        write = _writer(target)
        return [_WORD.sub(lambda m: m[0] if m[0].startswith("XQ") else write(m[0]), text) for text in texts]


def _writer(target: str) -> Callable[[str], str]:
    first = _FIRST.get(language(target).script)
    if first is None:
        ending = target.partition("-")[0]
        return lambda word: codecs.encode(word, "rot13") + ending
    return lambda word: "".join(chr(first + ord(c) - ord("a")) for c in word.lower())
