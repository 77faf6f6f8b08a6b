"""From a context and a response to token ids: one code for training and scoring.

The response is kept whole, then the newest turns, as many as fit; older turns are dropped at turn borders and counted
(cutting from the wrong side is how context gets lost without anybody noticing).  Turns are divided by the tokenizer's
own separator, so no vocabulary is added and frozen embeddings stay meaningful; text that looks like a special token
is read as ordinary text.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from mdialeval.records import Example, TrainingPair, Turn

Speakers = Literal["none", "letters"]


@dataclass(frozen=True, slots=True)
class Markup:
    """How a pair is written down for the encoder.

    Attributes:
        max_tokens: limit of a pair, special tokens included.
        max_turns: at most this many context turns, the newest; None = as many as fit.
        speakers: ``letters`` writes ``A:`` or ``B:`` before each turn (``A`` is the response's speaker).
    """

    max_tokens: int = 96
    max_turns: int | None = None
    speakers: Speakers = "none"


class Row(NamedTuple):
    """One pair as token ids.

    Attributes:
        context: the turns that fit, oldest first, each closed by the separator; empty where there are none.
        response: the response, closed by the separator.
        n_tokens: length of the pair with all special tokens.
        n_turns_dropped: context turns left out, the oldest ones.
        truncated: whether a turn or the response itself had to be cut inside.
    """

    context: tuple[int, ...]
    response: tuple[int, ...]
    n_tokens: int
    n_turns_dropped: int
    truncated: bool


def clean(text: str) -> str:
    """NFC, with runs of white space (line ends too) as one blank.

    >>> clean("Sure.\\n See  you ")
    'Sure. See you'
    """
    return " ".join(unicodedata.normalize("NFC", text).split())


def encode_pairs(tokenizer: Any, pairs: Iterable[TrainingPair | Example], markup: Markup) -> list[Row]:
    """Token ids of pairs, same order; each distinct turn is tokenised once.  A pair's response must not be None."""
    written = [_written(pair.context, pair.response, markup) for pair in pairs if pair.response is not None]
    texts = list(dict.fromkeys(text for context, response in written for text in (*context, response)))
    ids: dict[str, list[int]] = {}
    for start in range(0, len(texts), 4096):
        part = texts[start : start + 4096]
        coded = tokenizer(part, add_special_tokens=False, split_special_tokens=True, verbose=False)["input_ids"]
        ids.update(zip(part, coded, strict=True))
    return [_fit([ids[t] for t in context], ids[response], tokenizer, markup) for context, response in written]


def _written(context: Sequence[Turn], response: Turn, markup: Markup) -> tuple[list[str], str]:
    """The texts of a pair, with speaker letters where asked for."""
    turns = [*context, response]
    texts = [clean(turn.text) for turn in turns]
    if markup.speakers == "letters":
        texts = [f"{letter}: {text}" for letter, text in zip(_letters(turns), texts, strict=True)]
    return texts[:-1], texts[-1]


def _letters(turns: Sequence[Turn]) -> list[str]:
    """A letter a speaker, counted back from the response; unnamed speakers take turns."""
    if any(turn.speaker is None for turn in turns):
        return ["AB"[(len(turns) - 1 - i) % 2] for i in range(len(turns))]
    order = {speaker: i for i, speaker in enumerate(dict.fromkeys(turn.speaker for turn in reversed(turns)))}
    return [string.ascii_uppercase[order[turn.speaker] % 26] for turn in turns]


def _fit(context: list[list[int]], response: list[int], tokenizer: Any, markup: Markup) -> Row:
    """Keep the response, then the newest turns; see the module docstring."""
    separator = tokenizer.sep_token_id
    room = markup.max_tokens - 2  # the leading special token and the response's separator
    truncated = len(response) > room
    kept_response = response[:room]
    room -= len(kept_response)
    usable = context if markup.max_turns is None else context[max(0, len(context) - markup.max_turns) :]
    kept: list[list[int]] = []
    for turn in reversed(usable):
        if len(turn) + 1 > room:
            if not kept and room > 8:  # better the end of the newest turn than no context at all
                kept.append([*turn[len(turn) - room + 1 :], separator])
                truncated = True
            break
        kept.append([*turn, separator])
        room -= len(turn) + 1
    ids = tuple(token for turn in reversed(kept) for token in turn)
    return Row(ids, (*kept_response, separator), 2 + len(ids) + len(kept_response), len(context) - len(kept), truncated)
