"""Perturbations of a response, after USL-H (Phy et al., COLING 2020), made on text of any language.

Negative ones destroy the sentence (``reorder``, ``drop``, ``repeat``); positive ones leave a valid sentence
(``drop_final_mark``, ``simplify``, ``drop_function_words``).  The distributions are the published ones; ``strength``
scales them.  Differences to the published code: a shuffle never returns the original order, punctuation is dropped
from tokens and not from characters, and simplification removes a closed list of words instead of asking an English
tagger, so it exists in the languages of ``FUNCTION_WORDS`` only.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from mdialeval.languages import language
from mdialeval.tasks.tokens import Token

FINAL_MARKS = frozenset({".", "!", "?", "…", ",", "。", "！", "？", "、", "，", "؟", "।"})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTION_WORDS: dict[str, frozenset[str]] = {
    "en": _words("a an the"),
    "de": _words("der die das den dem des ein eine einen einem einer eines"),
    "es": _words("el la los las un una unos unas"),
    "fr": _words("le la les un une des du"),
    "pt": _words("o a os as um uma uns umas"),
    "it": _words("il lo la i gli le un uno una"),
    "nl": _words("de het een"),
}
"""Articles: without them the sentence is terse, and still understood."""

LIGHT_WORDS: dict[str, frozenset[str]] = {
    code: FUNCTION_WORDS[code] | _words(words)
    for code, words in {
        "en": "oh well so just really very quite please too also then that this these those my your",
        "de": "ach na ja doch mal sehr ganz bitte auch dann eben wohl",
        "es": "oh bueno pues muy tan también entonces mi tu su",
        "fr": "oh eh bien très aussi alors donc mon ma ton ta son sa",
        "pt": "oh bem muito tão também então meu minha seu sua",
    }.items()
}
"""Words that ``simplify`` removes: articles, particles, degree words and possessives."""

Perturbation = Callable[[Sequence[Token], random.Random, float], "list[Token] | None"]
Value = TypeVar("Value")


def reorder(tokens: Sequence[Token], rng: random.Random, strength: float = 1.0) -> list[Token] | None:
    """Shuffle the words; punctuation keeps its places.

    Args:
        tokens: of a response.
        rng: of the response.
        strength: share of the words that move, in (0, 1]; at least two.

    Returns:
        A different order, or None where there is none (fewer than two different words).
    """
    places = [i for i, token in enumerate(tokens) if not token.mark]
    if len({tokens[i].text for i in places}) < 2:
        return None
    moved = max(2, round(strength * len(places)))
    while True:
        chosen = sorted(rng.sample(places, min(moved, len(places))))
        order = chosen[:]
        rng.shuffle(order)
        shuffled = list(tokens)
        for place, origin in zip(chosen, order, strict=True):
            shuffled[place] = Token(tokens[origin].text, tokens[place].blank)
        if [t.text for t in shuffled] != [t.text for t in tokens]:
            return shuffled


def drop(tokens: Sequence[Token], rng: random.Random, strength: float = 1.0) -> list[Token] | None:
    """Drop each token with a probability that is drawn from U(0, 0.5 * strength); at least one goes, one word stays.

    Returns:
        What is left, or None for fewer than two words.
    """
    if sum(not token.mark for token in tokens) < 2:
        return None
    while True:
        threshold = rng.uniform(0.0, 0.5 * strength)
        kept = [token for token in tokens if rng.random() >= threshold]
        if any(not t.mark for t in kept) and sum(not t.mark for t in kept) < sum(not t.mark for t in tokens):
            return kept


def repeat(tokens: Sequence[Token], rng: random.Random, strength: float = 1.0) -> list[Token] | None:
    """After each token, with probability 0.1 * strength, say the last one to three tokens again, up to three times.

    Returns:
        The longer text, or None for a text without words.
    """
    if not any(not token.mark for token in tokens):
        return None
    while True:
        said: list[Token] = []
        for token in tokens:
            said.append(token)
            if token.mark or rng.random() >= 0.1 * strength:
                continue
            length = _span(len(said), rng)
            times = _weighted(rng, [(1, 0.8), (2, 0.15), (3, 0.05)])
            again = said[-length:]
            blank = any(t.blank for t in tokens)
            said += [t._replace(blank=t.blank or (blank and not t.mark)) for _ in range(times) for t in again]
        if len(said) > len(tokens):
            return said


def _span(available: int, rng: random.Random) -> int:
    if available == 1:
        return 1
    if available == 2:
        return _weighted(rng, [(1, 0.75), (2, 0.25)])
    return _weighted(rng, [(1, 0.7), (2, 0.2), (3, 0.1)])


def _weighted(rng: random.Random, choices: Sequence[tuple[Value, float]]) -> Value:
    """One value by its probability."""
    return rng.choices([value for value, _ in choices], [weight for _, weight in choices])[0]


def splice(pieces: Sequence[Sequence[Token]], rng: random.Random) -> list[Token] | None:
    """The start of one text, run on with parts of others: each bit reads well and the whole says nothing.

    So do fluent generators go wrong; shuffled, dropped and repeated words alone do not teach it.

    Args:
        pieces: the texts' tokens, at least two texts; the first gives the start, the last the end.
        rng: of the first text.

    Returns:
        The run-on text, or None where a text has fewer than four words.
    """
    if any(sum(not token.mark for token in tokens) < 4 for tokens in pieces):
        return None
    joined: list[Token] = []
    for i, tokens in enumerate(pieces):
        start = 0 if i == 0 else rng.randint(1, len(tokens) // 2)
        end = len(tokens) if i == len(pieces) - 1 else rng.randint(len(tokens) // 2, len(tokens) - 1)
        part = list(tokens[start:end])
        while part and part[0].mark:
            part.pop(0)
        while part and i < len(pieces) - 1 and part[-1].text in FINAL_MARKS:
            part.pop()
        if part and joined:
            part[0] = part[0]._replace(blank=any(t.blank for t in tokens))
        joined += part
    return joined


def drop_final_mark(tokens: Sequence[Token]) -> list[Token] | None:
    """The sentence without its final punctuation; None where it has none or nothing else."""
    kept = list(tokens)
    while kept and kept[-1].text in FINAL_MARKS:
        kept.pop()
    return kept if kept and len(kept) < len(tokens) else None


def drop_words(tokens: Sequence[Token], words: frozenset[str]) -> list[Token] | None:
    """The sentence without some words; None where it has none of them or no word would be left."""
    kept = [token for token in tokens if token.text.lower() not in words]
    return kept if len(kept) < len(tokens) and any(not t.mark for t in kept) else None


def corrupt(tokens: Sequence[Token], rng: random.Random, strength: float = 1.0) -> tuple[str, list[Token]] | None:
    """A negative by the published odds (reorder .3, drop .3, repeat .4): its kind and tokens.

    Where the drawn kind is impossible the others are tried; None where all are.
    """
    odds: list[tuple[tuple[str, Perturbation], float]] = [
        (("word_reorder", reorder), 0.3),
        (("word_drop", drop), 0.3),
        (("word_repeat", repeat), 0.4),
    ]
    while odds:
        kind, perturb = _weighted(rng, odds)
        if (found := perturb(tokens, rng, strength)) is not None:
            return kind, found
        odds = [(choice, weight) for choice, weight in odds if choice[0] != kind]
    return None


def keep_valid(tokens: Sequence[Token], code: str, rng: random.Random) -> tuple[str, list[Token]]:
    """A positive by the published odds (no final mark .1, simplified .1, no function words .1, unchanged .7).

    What is impossible for a text or its language stays unchanged.
    """
    base = language(code).code.partition("-")[0]
    kind = _weighted(rng, [("no_final_mark", 0.1), ("simplified", 0.1), ("no_function_words", 0.1), ("unchanged", 0.7)])
    found = None
    if kind == "no_final_mark":
        found = drop_final_mark(tokens)
    elif kind == "simplified":
        found = drop_words(tokens, LIGHT_WORDS.get(base, frozenset()))
    elif kind == "no_function_words":
        found = drop_words(tokens, FUNCTION_WORDS.get(base, frozenset()))
    return ("unchanged", list(tokens)) if found is None else (kind, found)
