"""Numbers, quantities with units, ordinals and dates."""

from __future__ import annotations

import re

from mdialeval.graphs.dependency.lexicon import CURRENCIES, DAYPERIODS, MONTHS, UNITS, WEEKDAYS
from mdialeval.graphs.dependency.reading import Reading, Token, children, lemma, low

_SMALL = {
    word: i
    for i, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ]
    )
}
_TENS = {
    word: 10 * i
    for i, word in enumerate(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], 2)
}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "dozen": 12}
_ORDINALS = {
    word: i
    for i, word in enumerate(
        [
            "first",
            "second",
            "third",
            "fourth",
            "fifth",
            "sixth",
            "seventh",
            "eighth",
            "ninth",
            "tenth",
            "eleventh",
            "twelfth",
        ],
        1,
    )
}
_CLOCK = re.compile(r"\d{1,2}:\d{2}")
_YEAR = re.compile(r"1[0-9]\d\d|20\d\d")


def number(words: list[str]) -> str | None:
    """The value of a number in words or digits, or None.

    >>> number(["three", "hundred", "and", "twenty-five"]), number(["1,200"]), number(["2.5", "million"])
    ('325', '1200', '2500000')
    """
    total, current, seen = 0.0, 0.0, False
    for word in [part for w in words for part in (w.lower().split("-") if not w[:1].isdigit() else [w])]:
        plain = word.replace(",", "")
        if word in ("and", "a"):
            continue
        if re.fullmatch(r"\d+(\.\d+)?", plain):
            current += float(plain)
        elif word in _SMALL or word in _TENS:
            current += _SMALL.get(word, 0) + _TENS.get(word, 0)
        elif word in _SCALES:
            current = (current or 1) * _SCALES[word]
            if _SCALES[word] >= 1000:
                total, current = total + current, 0
        else:
            return None
        seen = True
    value = total + current
    return (str(int(value)) if value == int(value) else f"{value:g}") if seen else None


def ordinal(word: str) -> str | None:
    """The value of an ordinal.

    >>> ordinal("fifth"), ordinal("22nd"), ordinal("small")
    ('5', '22', None)
    """
    if word in _ORDINALS:
        return str(_ORDINALS[word])
    match = re.fullmatch(r"(\d+)(st|nd|rd|th)", word)
    return match[1] if match else None


def value_of(token: Token) -> str | None:
    """The value of a number token with the number words that hang on it."""
    parts = [
        c
        for c in token.children
        if c.dep_ in ("compound", "quantmod", "nummod", "punct", "cc", "conj") and c.i <= token.i + 2
    ]
    words = [
        t.text
        for t in sorted([*parts, token], key=lambda t: t.i)
        if t.pos_ == "NUM" or low(t) in _SCALES or low(t) in ("and",)
    ]
    return number(words or [token.text])


def quantify(r: Reading, noun: Token, node: int, numeral: Token) -> None:
    """``:quant`` under a noun from its numeral, with about, more than, at least."""
    r.done.add(numeral.i)
    value = value_of(numeral)
    if value is None:
        r.draft.edge(node, "quant", r.draft.node(lemma(numeral)))
        return
    words = {low(c) for c in numeral.subtree}
    for phrase, concept in (
        (("about", "around", "approximately", "nearly", "almost"), "about"),
        (("than", "over"), "more-than"),
        (("least",), "at-least"),
    ):
        if words & set(phrase):
            concept = "less-than" if {"less", "fewer"} & words else concept
            wrapper = r.draft.node(concept)
            r.draft.value(wrapper, "op1", value)
            r.draft.edge(node, "quant", wrapper)
            return
    r.draft.value(node, "quant", value)


def quantity(r: Reading, token: Token) -> int | None:
    """``three years`` as temporal-quantity; None where the noun is no unit or not counted."""
    unit = lemma(token) if lemma(token) in UNITS else low(token)
    kind = UNITS.get(unit)
    counts = children(token, "nummod")
    if kind is None:
        return None
    if not counts:
        return None
    node = r.draft.node(kind)
    quantify(r, token, node, counts[0])
    r.draft.edge(node, "unit", r.draft.node(CURRENCIES.get(unit, unit)))
    return node


def money(r: Reading, token: Token) -> int | None:
    """A number with a currency sign before it."""
    sign = next((c for c in token.children if c.text in CURRENCIES), None)
    if sign is None:
        return None
    r.done.add(sign.i)
    node = r.draft.node("monetary-quantity")
    r.draft.value(node, "quant", value_of(token) or token.text)
    r.draft.edge(node, "unit", r.draft.node(CURRENCIES[sign.text]))
    return node


def date(r: Reading, token: Token) -> int | None:
    """Clock times, months with a day or year, years, weekdays and times of the day as date-entity."""
    word = low(token)
    spoken = _spoken_time(token)
    if spoken is not None:
        node = r.draft.node("date-entity")
        r.draft.value(node, "time", f'"{spoken}"')
        r.done.update(c.i for c in token.children if c.pos_ == "NUM")
        return node
    if _CLOCK.fullmatch(word) or (
        token.ent_type_ == "TIME"
        and any(low(c) in ("o'clock", "am", "pm", "a.m.", "p.m.") for c in (*token.children, token))
    ):
        return _clock(r, token)
    if word in MONTHS and token.pos_ == "PROPN":
        node = r.draft.node("date-entity")
        r.draft.value(node, "month", MONTHS[word])
        for c in token.children:
            if c.pos_ == "NUM" or ordinal(low(c)):
                r.done.add(c.i)
                value = ordinal(low(c)) or value_of(c) or c.text
                r.draft.value(node, "year" if _YEAR.fullmatch(value) else "day", value)
        return node
    if word in WEEKDAYS or (lemma(token) in WEEKDAYS and token.pos_ == "PROPN"):
        node = r.draft.node("date-entity")
        r.draft.edge(node, "weekday", r.draft.node(lemma(token)))
        return node
    if token.pos_ == "NUM" and token.ent_type_ == "DATE" and _YEAR.fullmatch(word):
        node = r.draft.node("date-entity")
        r.draft.value(node, "year", word)
        return node
    return None


def _spoken_time(token: Token) -> str | None:
    """``eight thirty`` as ``8:30``."""
    hour = next((c for c in token.children if c.i == token.i - 1 and low(c) in _SMALL), None)
    minutes = number([token.text]) if token.pos_ == "NUM" else None
    if hour is None or minutes is None or not 0 < _SMALL[low(hour)] < 13 or not 10 <= float(minutes) < 60:
        return None
    return f"{_SMALL[low(hour)]}:{minutes}"


def _clock(r: Reading, token: Token) -> int:
    node = r.draft.node("date-entity")
    digits = next((t for t in token.subtree if t.text[:1].isdigit() or t.pos_ == "NUM"), token)
    time = digits.text if _CLOCK.fullmatch(digits.text) else f"{value_of(digits) or digits.text}:00"
    r.draft.value(node, "time", f'"{time}"')
    r.done.update(t.i for t in token.subtree)
    return node


def dayperiod(r: Reading, token: Token) -> int | None:
    """``morning``, ``evening``: a date-entity in the older convention that the gold corpora of this project follow."""
    if lemma(token) not in DAYPERIODS or token.tag_ == "NNS" or token.dep_ in ("nsubj", "dobj", "attr", "compound"):
        return None
    node = r.draft.node("date-entity")
    r.draft.edge(node, "dayperiod", r.draft.node(lemma(token)))
    return node
