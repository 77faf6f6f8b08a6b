"""Checks of translations: flags with a measured value, and what happens to a flagged row.

``FLAGS`` is the one table of flags, thresholds and default policies.  A check never changes a text and never drops a
row by itself: it says what it measured, and ``dropped`` applies the policy.

Lengths are compared in letters' worth: one Han character counts as three Latin letters, a kana as two, a Hangul
syllable as two and a half, so that one pair of thresholds serves every pair of languages.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import regex

from mdialeval.errors import ConfigError, nearest
from mdialeval.languages import language as language_of
from mdialeval.records import Flag
from mdialeval.segments import has_letters, masks_of
from mdialeval.translate.identify import DOUBT, Identified, identify

VERSION = 1
"""Part of the cache keys of whole turns: raised when a check measures something else."""

Policy = Literal["keep", "drop", "retry"]


class FlagKind(NamedTuple):
    """One flag.

    Attributes:
        name: as it stands in ``Flag.name``.
        policy: what happens by default; ``retry`` means one more try with repeated n-grams forbidden, where the engine
            can, and dropped if the flag is still there.
        value: what ``Flag.value`` measures.
        rule: when it is raised.
    """

    name: str
    policy: Policy
    value: str
    rule: str


FLAGS: Mapping[str, FlagKind] = {
    kind.name: kind
    for kind in (
        FlagKind("empty", "drop", "letters in the hypothesis", "no letter, though the source has some"),
        FlagKind(
            "copied_source",
            "drop",
            "share of the hypothesis' words (or characters) that stand in the source",
            "1, or at least 0.9 of four or more words; short turns (under 8 letters' worth) and names are exempt",
        ),
        FlagKind(
            "loop",
            "retry",
            "times that one n-gram repeats without a break, or the compression ratio",
            "a word 4 times, a longer n-gram 3 times, a letter 12 times, or zlib above 4, unless the source does too",
        ),
        FlagKind("truncated", "drop", "length ratio", "below 0.35 of a source of 60 or more letters' worth"),
        FlagKind(
            "wrong_script",
            "drop",
            "share of letters in the language's script",
            "below 0.5 of 4 or more letters; words that also stand in the source are not counted",
        ),
        FlagKind(
            "wrong_language",
            "drop",
            "confidence that it is the target language",
            "below 0.05 while another language has 0.8 or more; under 24 letters' worth the answer is unknown: no flag",
        ),
        FlagKind(
            "number_mismatch",
            "keep",
            "numbers on one side only",
            "any number of two or more digits on one side only, or digits where the source has none and no number word",
        ),
        FlagKind("tags", "keep", "masks lost or changed", "a mask, tag, address or emoji of the source is missing"),
        FlagKind("sentence_count", "keep", "sentences missing", "fewer sentences than the source has"),
        FlagKind(
            "length_ratio", "keep", "length ratio", "outside 0.4 to 2.5, for sources of 12 letters' worth or more"
        ),
        FlagKind("failed", "drop", "failed sentences", "the engine gave no answer for a part of the turn"),
    )
}

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+(?:['’][\p{L}]+)*")
_LETTER = regex.compile(r"\p{L}")
_DIGITS = regex.compile(r"\p{Nd}+(?:[.,:]\p{Nd}+)*")
_NUMBER_WORD = regex.compile(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty|fifty|sixty|seventy"
    r"|eighty|ninety|hundred|thousand|million|dozen|half|first|second|third|noon|midnight|[ap]\.?m)\b",
    regex.IGNORECASE,
)
_HEAVY = regex.compile(r"(\p{Han})|(\p{Hiragana}|\p{Katakana})|(\p{Hangul})")
_ENDS = regex.compile(r"[.!?…]+(?=[\"'”’)\]]*(?:\s|$))|[。！？｡؟۔।॥]+")
_SCRIPTS = {"Hans": "Han", "Hant": "Han", "Jpan": "Han Hiragana Katakana", "Kore": "Hangul Han"}
_TIMES = 3
_LEAST = 24  # letters' worth
_LONG_RUN = regex.compile(r"([^\W\d_])\1{11,}")
_RUN = regex.compile(r"([^\W\d_])\1{5,}")
_LATIN = regex.compile(r"\p{Latin}")
_LEFT_OVER = regex.compile(r"XQ\d+X")


def check(
    source: str,
    hypothesis: str,
    source_language: str,
    target_language: str,
    masks: Sequence[str] | None = None,
    identified: Mapping[str, Identified | None] | None = None,
) -> tuple[Flag, ...]:
    """The flags of one turn, in the order of ``FLAGS``.

    Args:
        masks: what had to come through unchanged; found in the source where None.
        identified: hypothesis -> its language, where somebody asked already (``identify_all`` over ``identifiable``).

    >>> [f.name for f in check("今天不行", "今天不行", "zh", "en")]
    ['copied_source', 'wrong_script']
    >>> check("OK", "OK", "en", "pt"), check("How are you?", "Como vai você?", "en", "pt")
    ((), ())
    """
    if not has_letters(source):
        return ()
    if not has_letters(hypothesis):
        return (Flag("empty", 0.0, "the hypothesis has no letters"),)
    masks = masks_of(source) if masks is None else masks
    size, theirs = weight(source), weight(hypothesis)
    ratio = theirs / max(size, 1.0)
    copied = _copied(source, hypothesis, size)
    found = [
        copied,
        _loop(source, hypothesis, target_language),
        _truncated(size, ratio),
        _script(source, hypothesis, target_language),
        _language(hypothesis, target_language, identified) if copied is None and theirs >= _LEAST else None,
        _numbers(source, hypothesis),
        _tags(hypothesis, masks),
        _sentences(source, hypothesis),
        _length(size, ratio),
    ]
    return tuple(flag for flag in found if flag is not None)


def policies(on_flag: Mapping[str, Policy]) -> dict[str, Policy]:
    """The policy for every flag: the defaults, overridden.

    Raises:
        ConfigError: names a flag that does not exist.
    """
    unknown = [
        f"translate.on_flag: unknown flag {name!r}: {nearest(name, FLAGS)}" for name in on_flag if name not in FLAGS
    ]
    if unknown:
        raise ConfigError(unknown)
    return {name: on_flag.get(name, kind.policy) for name, kind in FLAGS.items()}


def dropped(flags: Sequence[Flag], on_flag: Mapping[str, Policy] | None = None) -> str | None:
    """The name of the first flag that drops a row, or None where the row stays.

    >>> dropped([Flag("tags", 1.0), Flag("loop", 9.0)]), dropped([Flag("loop", 9.0)], {"loop": "keep"})
    ('loop', None)
    """
    policy = policies(on_flag or {})
    return next((flag.name for flag in flags if policy.get(flag.name, "keep") != "keep"), None)


def weight(text: str) -> float:
    """The length of a text in letters' worth; see the module docstring.

    >>> weight("abc 1"), weight("你好")
    (4.0, 6.0)
    """
    total = float(sum(map(str.isalnum, text)))
    if text.isascii():
        return total
    for match in _HEAVY.finditer(text):
        total += 2.0 if match[1] else 1.0 if match[2] else 1.5
    return total


def _copied(source: str, hypothesis: str, size: float) -> Flag | None:
    words, theirs = _WORD.findall(source), _WORD.findall(hypothesis.casefold())
    if size < 8 or (len(words) <= 4 and all(w[0].isupper() or w[0].isdigit() for w in words)):
        return None
    mine = [w.casefold() for w in words]
    if mine == theirs:
        return Flag("copied_source", 1.0, "the hypothesis equals the source")
    if len(theirs) < 4:
        return None
    share = sum((Counter(mine) & Counter(theirs)).values()) / len(theirs)
    return Flag("copied_source", round(share, 3), "nearly all words stand in the source") if share >= 0.9 else None


def _units(text: str, language: str) -> list[str]:
    if language_of(language).spaced:
        return [str(word) for word in _WORD.findall(text.casefold())]
    return [c for c in text if c.isalnum()]


def _repeats(units: Sequence[str], longest: int) -> int:
    """The most times that one n-gram of up to ``longest`` units follows itself without a break, less one for n = 1."""
    if len(set(units)) == len(units):
        return 1
    best = 1
    for n in range(1, longest + 1):
        run = 0
        for i in range(n, len(units)):
            run = run + 1 if units[i] == units[i - n] else 0
            if run >= n:
                times = run // n + 1
                best = max(best, times - 1 if n == 1 else times)
    return best


def _loop(source: str, hypothesis: str, language: str) -> Flag | None:
    units = _units(hypothesis, language)
    longest = min(8 if language_of(language).spaced else 12, len(units) // 2)
    times = _repeats(units, longest)
    mine: list[str] = _WORD.findall(source.casefold())
    if times >= _TIMES and times > 1.5 * _repeats(mine, min(8, len(mine) // 2)) + 1:
        return Flag("loop", float(times), f"an n-gram repeats {times} times without a break")
    run = _LONG_RUN.search(hypothesis)
    if run and not _RUN.search(source):
        return Flag("loop", float(len(run[0])), "one character repeats without a break")
    ratio = _compression(hypothesis)
    if ratio > 4 and ratio > 1.5 * _compression(source):
        return Flag("loop", round(ratio, 2), "the hypothesis compresses far better than the source")
    return None


def _compression(text: str) -> float:
    raw = text.encode("utf-8", "surrogatepass")
    return len(raw) / len(zlib.compress(raw)) if len(raw) >= 120 else 1.0


def _truncated(size: float, ratio: float) -> Flag | None:
    if ratio >= 0.35 or size < 60:
        return None
    return Flag("truncated", round(ratio, 3), "far shorter than the source")


def _length(size: float, ratio: float) -> Flag | None:
    if 0.4 <= ratio <= 2.5 or size < 12:
        return None
    return Flag("length_ratio", round(ratio, 3), "hypothesis length over source length, in letters' worth")


def _script(source: str, hypothesis: str, language: str) -> Flag | None:
    code = language_of(language).script
    pattern = _script_pattern(code)
    if pattern is None:
        return None
    mine = set(_WORD.findall(source)) if pattern.search(source) is None and has_latin(source) else set()
    words = [w for w in _WORD.findall(hypothesis) if w not in mine or not _name(w)]
    text = "".join(words)
    letters = len(_LETTER.findall(text))
    if letters < 4:
        return None
    share = len(pattern.findall(text)) / letters
    return Flag("wrong_script", round(share, 3), f"letters in {code}") if share < 0.5 else None


def _name(word: str) -> bool:
    return word[0].isupper() or word[0].isdigit()


def has_latin(text: str) -> bool:
    """Whether a text holds a Latin letter."""
    return _LATIN.search(text) is not None


_patterns: dict[str, regex.Pattern[str] | None] = {}


def _script_pattern(code: str) -> regex.Pattern[str] | None:
    if code not in _patterns:
        names = _SCRIPTS.get(code, code).split()
        try:
            _patterns[code] = regex.compile("[" + "".join(rf"\p{{Script={n}}}" for n in names) + "]")
        except regex.error:  # a script that the Unicode tables do not name
            _patterns[code] = None
    return _patterns[code]


def identifiable(hypothesis: str) -> bool:
    """Whether a text is long enough to tell its language."""
    return weight(hypothesis) >= _LEAST


def _language(hypothesis: str, language: str, identified: Mapping[str, Identified | None] | None) -> Flag | None:
    known = identified is not None and hypothesis in identified
    found = identified[hypothesis] if known and identified is not None else identify(hypothesis, language)
    if found is None or found.target >= DOUBT or found.confidence < 0.8:
        return None
    return Flag("wrong_language", round(found.target, 3), f"looks like {found.language} ({found.confidence:.2f})")


def _normal(number: str) -> str:
    digits = "".join(str(int(c)) for c in number if c.isdecimal())
    return digits.lstrip("0") or "0"


def _numbers(source: str, hypothesis: str) -> Flag | None:
    mine = Counter(_normal(n) for n in _DIGITS.findall(source))
    theirs = Counter(_normal(n) for n in _DIGITS.findall(hypothesis))
    lost = [n for n in (mine - theirs).elements() if len(n) > 1]
    extra = list((theirs - mine).elements())
    if _NUMBER_WORD.search(source):
        extra = []
    wrong = lost + extra
    if not wrong:
        return None
    return Flag("number_mismatch", float(len(wrong)), "on one side only: " + ", ".join(sorted(set(wrong))[:4]))


def _tags(hypothesis: str, masks: Sequence[str]) -> Flag | None:
    lost = [m for m, n in Counter(masks).items() for _ in range(n - hypothesis.count(m))]
    left = _LEFT_OVER.findall(hypothesis) if not any("XQ" in m for m in masks) else []
    if not lost and not left:
        return None
    return Flag("tags", float(len(lost) + len(left)), "lost or changed: " + " ".join((lost + left)[:4]))


def _sentences(source: str, hypothesis: str) -> Flag | None:
    missing = len(_ENDS.findall(source)) - len(_ENDS.findall(hypothesis))
    if missing <= 0 or len(_ENDS.findall(source)) < 2:
        return None
    return Flag("sentence_count", float(missing), "fewer sentence ends than in the source")
