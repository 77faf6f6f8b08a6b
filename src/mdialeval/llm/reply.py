"""From a judge's reply to a score, or to the reason why there is none.  Never a default, never a joined digit.

The order of evidence: a JSON object's score field; the last labelled number (``Score: 4``, ``分数：4``); the one number
left once the scale itself ("on a scale of 1 to 5") has been taken away; the only number word.  Two different numbers
without a label are no answer.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Literal, NamedTuple

ParseStatus = Literal["ok", "empty", "refused", "unparsed", "out_of_range"]


class Reply(NamedTuple):
    """A parsed reply: ``score`` is None exactly when ``status`` is not ``ok``."""

    score: float | None
    status: ParseStatus


_HAN = {"零": 0, "一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10}
_HAN_DIGITS = "".join(_HAN)
_WORDS = {
    "en": "zero one two three four five six seven eight nine ten",
    "de": "null eins zwei drei vier fünf sechs sieben acht neun zehn",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf dix",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve diez",
    "pt": "zero um dois três quatro cinco seis sete oito nove dez",
}
_VALUE_OF = {word: value for words in _WORDS.values() for value, word in enumerate(words.split())}
_KEYS = (
    "score",
    "rating",
    "value",
    "note",
    "nota",
    "bewertung",
    "puntuación",
    "评分",
    "分数",
    "評価",
    "スコア",
    "点数",
)
_LABEL = (
    r"score|rating|rate|grade|answer|final|bewertung|punktzahl|punkte|wertung|note|nota|puntuación|puntuacion|"
    r"calificación|calificacion|pontuação|pontuacao|avaliação|avaliacao|évaluation|evaluation|评分|分数|得分|评价|"
    r"評価|スコア|点数|評点"
)
_NUMBER = r"[-−]?\d+(?:[.,]\d+)?"
_OUT_OF = r"(?:/|out of|von|sur|de|sobre|em|分之)"
_SCALE = re.compile(
    r"""(?:scale|skala|échelle|echelle|escala|range|尺度|範囲|范围)?\s*
    (?:of|from|between|von|de|du|entre|zwischen|从|在|から)?\s*
    \d+(?:[.,]\d+)?\s*(?:-|–|—|~|〜|to|and|bis|und|à|a|et|y|e|到|至|から)\s*\d+(?:[.,]\d+)?
    (?:\s*(?:scale|skala|分制|段階|の(?:間|範囲)))?""",
    re.IGNORECASE | re.VERBOSE,
)
_FRACTION = re.compile(rf"({_NUMBER})\s*{_OUT_OF}\s*(\d+)(?![\d.,]*\d)", re.IGNORECASE)
_LABELLED = re.compile(rf"(?:{_LABEL})\W{{0,4}}(?:is|ist|est|es|é|是|为|は)?\W{{0,4}}({_NUMBER})", re.IGNORECASE)
_ANY = re.compile(rf"(?<![A-Za-zÀ-ÿ_\d.,]){_NUMBER}(?![A-Za-zÀ-ÿ_\d]|[.,]\d)")  # CJK writes no blanks
_REFUSAL = re.compile(
    r"\b(?:can(?:no|')t|cannot|unable to|won't|not able to|refuse|kann (?:ich )?nicht|kann das nicht|je ne peux pas|"
    r"impossible de|no puedo|não posso|nao posso)\b|无法|不能|できません|できない|お答えでき",
    re.IGNORECASE,
)


def parse_reply(text: str | None, low: float = 1.0, high: float = 5.0) -> Reply:
    """Read one score on a declared scale out of a judge's reply.

    Args:
        text: the reply alone (never the prompt's echo); None where there is none.
        low, high: the declared scale, both ends included.

    Returns:
        The score in [low, high], or None with why: ``empty``, ``refused``, ``unparsed`` (no number, or several
        different ones without a label), ``out_of_range`` (a number that is not on the scale, such as 8/10 on 1 to 5).

    >>> parse_reply("4/5"), parse_reply("On a scale of 1-5 I'd say 2").score, parse_reply("10").status
    (Reply(score=4.0, status='ok'), 2.0, 'out_of_range')
    >>> parse_reply("I can't rate this."), parse_reply("４").score, parse_reply("4,5").score
    (Reply(score=None, status='refused'), 4.0, 4.5)
    """
    plain = _plain(text or "")
    if not plain.strip():
        return Reply(None, "empty")
    for value in (_from_json(plain), _from_text(plain, high)):
        if value is not None:
            return Reply(value, "ok") if low <= value <= high else Reply(None, "out_of_range")
    return Reply(None, "refused" if _REFUSAL.search(plain) else "unparsed")


def _plain(text: str) -> str:
    """NFKC, every decimal digit of any script as ASCII, Han numerals that stand alone as digits."""
    text = unicodedata.normalize("NFKC", text).replace("’", "'").replace("٫", ".")
    text = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
    return re.sub(
        r"(?<![一-鿿])([零一二两三四五六七八九十])(?=$|[^一-鿿]|[分点星颗])|(?<=[是为打给])([零一二两三四五六七八九十])(?=[分点星]|$|[^一-鿿])",
        lambda m: str(_HAN[m.group(1) or m.group(2)]),
        text,
    )


def _from_json(text: str) -> float | None:
    """The score field of the last whole JSON object; a cut one is read by its label like any text."""
    for found in reversed(re.findall(r"\{[^{}]*\}", text)):
        try:
            fields = json.loads(found)
        except json.JSONDecodeError:
            continue
        for key, value in fields.items():
            if key.lower() in _KEYS:
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    return float(value)
                if isinstance(value, str):
                    return _from_text(value, None)
    return None


def _from_text(text: str, high: float | None) -> float | None:
    fractions = [(_float(a), float(b)) for a, b in _FRACTION.findall(text)]
    rest = _FRACTION.sub(lambda m: m.group(1), text) if fractions else text
    if fractions and high is not None and any(whole != high for _, whole in fractions):
        return max(whole for _, whole in fractions) + high  # another scale: out of range, never rescaled silently
    rest = _SCALE.sub(" ", rest)
    labelled = _LABELLED.findall(rest)
    if labelled:
        return _float(labelled[-1])
    if fractions:
        return fractions[-1][0]
    numbers = {_float(n) for n in _ANY.findall(re.sub(r"(?<=\d)(?=[分点星つ])", " ", rest))}
    if not numbers:
        numbers = {float(_VALUE_OF[w]) for w in re.findall(r"[^\W\d_]+", rest.lower()) if w in _VALUE_OF and len(w) > 2}
    return numbers.pop() if len(numbers) == 1 else None


def _float(text: str) -> float:
    return float(text.replace(",", ".").replace("−", "-"))
