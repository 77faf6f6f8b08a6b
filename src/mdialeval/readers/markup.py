"""Speaker and turn markup inside a text cell (``<speaker1>``, ``</s><s>``, ``__eou__``) into turns."""

from __future__ import annotations

import re
from collections.abc import Collection

from mdialeval.records import Turn

_SPEAKER = re.compile(r"\s*<(speaker\d+)>\s*", re.IGNORECASE)
_BREAK = re.compile(r"\s*(?:</s>\s*<s>|</s>|<s>|__eou__|__eot__)\s*")


def has_markup(text: str) -> bool:
    """Whether a text holds speaker or turn markup."""
    return bool(_SPEAKER.search(text) or _BREAK.search(text))


def labelled_turn(line: str, speakers: Collection[str]) -> Turn:
    """A line such as ``User: Hi`` as a turn of that speaker; other text before a colon stays text.

    >>> labelled_turn("User: Well: hi", ("User", "System")), labelled_turn("Note: hi", ("User", "System"))
    (Turn(text='Well: hi', speaker='User'), Turn(text='Note: hi', speaker=None))
    """
    name, colon, said = line.strip().partition(":")
    return Turn(said.strip(), name) if colon and name in speakers else Turn(line.strip())


def marked_turns(text: str) -> tuple[Turn, ...]:
    """The turns of a marked-up text; blank ones are left out.

    >>> marked_turns("<speaker1> Hi, #NAME#! </s><s> <speaker2> Hello.")
    (Turn(text='Hi, #NAME#!', speaker='speaker1'), Turn(text='Hello.', speaker='speaker2'))
    >>> [turn.text for turn in marked_turns("Hi . __eou__ Hello . __eou__")]
    ['Hi .', 'Hello .']
    """
    turns = []
    for part in _BREAK.split(text):
        before, *marked = _SPEAKER.split(part)
        if before.strip():
            turns.append(Turn(before.strip()))
        turns += [
            Turn(said.strip(), name.lower())
            for name, said in zip(marked[::2], marked[1::2], strict=True)
            if said.strip()
        ]
    return tuple(turns)
