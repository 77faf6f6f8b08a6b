"""Tokens to perturb: words and punctuation marks, or characters where the language writes no blanks.

Every token remembers whether a blank stood before it, so that joined tokens look like written text: a perturbed
response must not be recognisable by its spacing or by a capital letter in the middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import regex

from mdialeval.languages import language

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+(?:['’´`-][\p{L}\p{M}\p{N}]+)*|\S")
_CHARACTER = regex.compile(r"[\p{Latin}\p{N}]+(?:['’-][\p{Latin}\p{N}]+)*|[^\s]\p{M}*")
_MARK = regex.compile(r"[\p{P}\p{S}]+")


class Token(NamedTuple):
    """A piece of text and whether a blank stands before it."""

    text: str
    blank: bool

    @property
    def mark(self) -> bool:
        """Whether it is punctuation or a symbol."""
        return _MARK.fullmatch(self.text) is not None


def tokens_of(text: str, code: str) -> list[Token]:
    """The tokens of a text.

    Args:
        text: any text.
        code: its language; without blanks between words every character is a token (Latin words stay whole).

    >>> [t.text for t in tokens_of("Well, it's 5 o'clock!", "en")]
    ['Well', ',', "it's", '5', "o'clock", '!']
    >>> [t.text for t in tokens_of("我用 iPhone。", "zh")]
    ['我', '用', 'iPhone', '。']
    """
    pattern = _WORD if language(code).spaced else _CHARACTER
    found = pattern.finditer(text)
    return [Token(m.group(), m.start() > 0 and text[m.start() - 1].isspace()) for m in found]


def text_of(tokens: Sequence[Token]) -> str:
    """Written text; the first token has no blank before it.

    >>> text_of(tokens_of("Well, it's 5!", "en"))
    "Well, it's 5!"
    """
    return "".join((" " if token.blank and i else "") + token.text for i, token in enumerate(tokens))


def recapitalise(tokens: Sequence[Token], original: Sequence[Token]) -> list[Token]:
    """Give the sentence's capital to the first word, where the original's first word has one.

    >>> text_of(recapitalise(tokens_of("you Are", "en"), tokens_of("Are you", "en")))
    'You are'
    """
    first = next((t for t in original if not t.mark), None)
    if first is None or len(first.text) < 2 or not (first.text[0].isupper() and first.text[1:].islower()):
        return list(tokens)
    lowered = [t._replace(text=first.text[0].lower() + first.text[1:]) if t.text == first.text else t for t in tokens]
    for i, token in enumerate(lowered):
        if not token.mark:
            lowered[i] = token._replace(text=token.text[0].upper() + token.text[1:])
            break
    return lowered
