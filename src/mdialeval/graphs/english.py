"""Text before parsing: made plain, split into sentences, and refused where it is not English."""

from __future__ import annotations

import re
import unicodedata

from mdialeval.segments import clean as clean_turn
from mdialeval.segments import has_letters, split_sentences

_COMMON = """
a about after all also am an and any are as at be because been before but by can could did do does don't down for
from get go good had has have he her here him his how i i'm if in into is it it's its just know let like may me
might more must my no not now of oh on one only or our out over see shall she should so some than that that's the
their them then there these they think this those time to too up us very want was we well were what when where which
who why will with would yes you your
"""
_FUNCTION_WORDS = frozenset(_COMMON.split())

MAX_SENTENCES = 60
"""Sentences of one turn that are parsed; what is beyond is left out and the graph is ``truncated``."""

_MAX_TOKEN = 60
_MIN_JUDGED = 6

_QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "’": "'", "‘": "'", "`": "'", "´": "'"})
_ONE = re.compile(r"\b(some|any|every) one\b(?! (?:of|thing|day|time))", re.IGNORECASE)
_HYPHEN = re.compile(r"(?<=\w) - (?=\w)")
_DASH = re.compile(r" - (?:- )+")
_GLUED = re.compile(r"(?<=[a-z]{2}[.?!])(?=[A-Z][a-z'])")
_PLEASE = re.compile(r"\bpl[sz]\b", re.IGNORECASE)
_LONG = re.compile(rf"\S{{{_MAX_TOKEN},}}")
_STUTTER = re.compile(r"([!?.,;:\-_=*~#'\"])\1{3,}")


def plain(text: str) -> str:
    """NFKC, without control and format characters or dialogue markup, detokenised, shouting lowered, single blanks.

    >>> plain("I  DO NOT\\nKNOW THAT MAN , sir\\u200b ! __eou__")
    'I do not know that man, sir!'
    """
    text = unicodedata.normalize("NFKC", text)
    text = "".join(" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c)[0] != "C")
    text = " ".join(clean_turn(_GLUED.sub(" ", text.translate(_QUOTES)), "en").split())
    text = _PLEASE.sub("please", text)
    text = _HYPHEN.sub("-", _DASH.sub(" -- ", _ONE.sub(r"\1one", text)))
    text = _LONG.sub(lambda match: match[0][:_MAX_TOKEN], _STUTTER.sub(r"\1\1\1", text))
    return _lower_shouting(text)


def _lower_shouting(text: str) -> str:
    letters = [c for c in text if c.isalpha()]
    words = text.split()
    if len(words) < 3 or sum(c.isupper() for c in letters) < 0.7 * max(1, len(letters)):
        return text
    return " ".join("I" + w[1:].lower() if re.match(r"I('|\b)", w) else w.lower() for w in words)


def sentences(text: str) -> list[str]:
    """The sentences of a plain text; long ones come in parts.

    >>> sentences("Hi. How are you?")
    ['Hi.', 'How are you?']
    """
    return [part.strip() for part in split_sentences(text, "en") if part.strip()]


def english_problem(text: str) -> str:
    """Why a text is not parsed as English, or the empty string.

    Another script is refused at any length; Latin text only from six words on, when hardly any of them is an English
    function word.  Text without letters passes (it has no graph, but it is not foreign).

    >>> english_problem("Nein, ich habe heute leider keine Zeit dafür.")
    'not English: 0 of 8 words are common English words; parse the English side of the dialogue'
    >>> english_problem("今天不行")
    'not English: written in another script; parse the English side of the dialogue'
    >>> english_problem("Ciao bella!"), english_problem("😂😂")
    ('', '')
    """
    if not has_letters(text):
        return ""
    letters = [c for c in text if c.isalpha()]
    latin = sum(_is_latin(c) for c in letters)
    if latin < 0.5 * len(letters):
        return "not English: written in another script; parse the English side of the dialogue"
    words = re.findall(r"[^\W\d_]+(?:['’][^\W\d_]+)?", text.lower())
    common = sum(word in _FUNCTION_WORDS or word.partition("'")[0] in _FUNCTION_WORDS for word in words)
    if len(words) >= _MIN_JUDGED and common < 0.1 * len(words):
        accented = sum(not c.isascii() for c in letters)
        if (common == 0 and (accented or len(words) >= 2 * _MIN_JUDGED)) or accented > 1:
            return (
                f"not English: {common} of {len(words)} words are common English words; "
                "parse the English side of the dialogue"
            )
    return ""


def has_content(text: str) -> bool:
    """Whether a text says anything that a graph can hold.

    >>> has_content("?!"), has_content("7")
    (False, True)
    """
    return has_letters(text) or any(c.isdigit() for c in text)


def _is_latin(character: str) -> bool:
    return character.isascii() or unicodedata.name(character, "").startswith(("LATIN", "MODIFIER", "FULLWIDTH LATIN"))
