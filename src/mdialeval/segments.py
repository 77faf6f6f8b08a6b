"""Turns to sentences for translation, and back again: as many turns afterwards as before.

``prepare`` cleans one turn (NFC, no control tokens, detokenised), splits it into sentences and protects what an engine
must not touch; ``join`` puts the translated sentences together.  Sentences are found by pySBD where it knows the
language and where the simple rule (a terminator, a blank, a capital or another opening) could be fooled by an
abbreviation; otherwise by that rule.  Nothing here depends on an engine.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import regex

from mdialeval.languages import language as language_of

VERSION = 1
"""Part of the cache keys of whole turns: raised when the text that is sent to an engine changes."""

MAX_WORDS = 80
"""A longer sentence is sent in parts: engines cut or garble what is far over their training length."""

MAX_UNSPACED = 160
"""The same limit in characters, for languages without blanks between words."""

_PYSBD_CODES = "en hi mr zh es am ar hy bg ur ru pl fa nl da fr my el it ja de kk sk"
_PYSBD = frozenset(_PYSBD_CODES.split())

_CONTROL = regex.compile(
    r"</?s>|</?speaker[ _]?\d*>|__\w{2,20}__|<(?:pad|unk|mask|bos|eos|sep|cls|eou|eot|turn|user|system|bot)>"
    r"|\[(?:CLS|SEP|PAD|MASK|UNK|EOS|BOS)\]|<\|[^|<>]{1,40}\|>",
    regex.IGNORECASE,
)
_EMOJI = (
    r"(?:\p{Regional_Indicator}{2}|[0-9#*]\uFE0F?\u20E3"
    r"|\p{Extended_Pictographic}[\uFE0F\p{Emoji_Modifier}]*(?:\u200D\p{Extended_Pictographic}[\uFE0F\p{Emoji_Modifier}]*)*)"
)
_SMILEY = r"(?<!\S)[:;=]['-]?[()DPp](?!\w)"
_NUMBER = r"\d+(?:[.,]\d+)*"
_UNIT = r"(?:kg|km|cm|mm|mg|ml|kWh|kB|MB|GB|TB|mph|km/h|°\s?[CF]|lbs?|oz|ft|m²|km²)"
_MASK = regex.compile(
    r"https?://[^\s<>\"]*[^\s<>\".,;:!?)\]']|www\.[^\s<>\"]*[^\s<>\".,;:!?)\]']"  # addresses
    r"|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]+)+"  # e-mail
    r"|#[A-Za-z][\w-]*#|\[[A-Z][A-Z_]+\d*\]|\{\w+\}|(?<!\w)@\w{2,}"  # masks of anonymised corpora, mentions
    r"|</?[A-Za-z][^<>]{0,80}>"  # tags
    rf"|[$€£¥₹₩]\s?{_NUMBER}|(?<![\w.,]){_NUMBER}\s?[€£¥₹₩]|(?<![\w.,]){_NUMBER}\s?{_UNIT}(?!\w)"
    rf"|{_EMOJI}|{_SMILEY}"
)
_EDGE = regex.compile(rf"(?:{_EMOJI}|{_SMILEY}|\s)+")
_TAIL = regex.compile(rf"(?:\s*(?:{_EMOJI}|{_SMILEY}))+\s*$")
_LETTER = regex.compile(r"\p{L}")
_PLACEHOLDER = regex.compile(r"XQ(\d+)X", regex.IGNORECASE)

_TERMINATOR = regex.compile(r"[.!?…]+[\"'”’)\]]*\s+|[。！？｡]+[”’」』）]*\s*")
_OPENING = regex.compile(rf"(?:{_EMOJI}\s*)*[\"'“‘(\[¿¡]*[\p{{Lu}}\p{{Lt}}\p{{Lo}}\d¿¡]|{_EMOJI}")
_TITLES = frozenset({"dr", "dra", "mr", "mrs", "ms", "prof", "sr", "sra", "sta", "st", "av", "ph", "núm", "etc"})
_ABBREVIATION = regex.compile(r"[\"'“(\[]*(?:\p{L}{1,4}|\p{Lu}\p{L}{4}|\p{L}+(?:\.\p{L}+)+|\d+)")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a turn.

    Attributes:
        text: as it stands in the cleaned turn, without blanks around it.
        before: the blanks before it.
        sent: whether it goes to an engine; if not it is copied (no letters, or an emoji at a sentence's edge).
        protected: ``text`` with placeholders in the place of ``masks``; equal to ``text`` where there are none.
        masks: what stands behind the placeholders ``XQ1X``, ``XQ2X`` ...
    """

    text: str
    before: str
    sent: bool
    protected: str
    masks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prepared:
    """A cleaned turn and its pieces; ``"".join(before + text)`` over the pieces is the turn."""

    text: str
    pieces: tuple[Piece, ...]

    @property
    def sentences(self) -> int:
        """How many pieces go to an engine."""
        return sum(piece.sent for piece in self.pieces)


def prepare(text: str, language: str) -> Prepared:
    """One turn, ready for translation.

    >>> [p.protected for p in prepare("Hi , #NAME# ! Was it $ 5 ? __eou__ 😂", "en").pieces if p.sent]
    ['Hi, XQ1X!', 'Was it XQ1X?']
    >>> prepare("4417-0032", "en").sentences
    0
    """
    cleaned = clean(text, language)
    pieces: list[Piece] = []
    carried = ""
    for sentence in split_sentences(cleaned, language):
        body = sentence.strip()
        if not body:
            carried += sentence
            continue
        start = sentence.index(body)
        _edges(carried + sentence[:start], body, pieces)
        carried = sentence[start + len(body) :]
    return Prepared(cleaned, tuple(pieces))


def join(prepared: Prepared, translated: Sequence[str], source: str, target: str) -> str:
    """The turn in the target language from one translation for each piece that was sent.

    >>> join(prepare("Yes. I see. 😂", "en"), ["はい。", "分かりました。"], "en", "ja")
    'はい。分かりました。 😂'
    """
    rest = iter(translated)
    from_spaced, to_spaced = language_of(source).spaced, language_of(target).spaced
    parts: list[str] = []
    last_sent = False
    for piece in prepared.pieces:
        before = piece.before
        if parts and piece.sent and last_sent and before.strip(" ") == "" and from_spaced != to_spaced:
            before = " " if to_spaced else ""
        parts.append(before + (next(rest).strip() if piece.sent else piece.text))
        last_sent = piece.sent
    return "".join(parts).strip()


def restore(translated: str, masks: Sequence[str]) -> str | None:
    """Put the masks back; None where a placeholder is lost, doubled or strange: the engine did not keep it.

    >>> restore("Oi, XQ1X!", ["#NAME#"])
    'Oi, #NAME#!'
    >>> restore("Oi!", ["#NAME#"]) is None
    True
    """
    found = sorted(int(n) for n in _PLACEHOLDER.findall(translated))
    if found != list(range(1, len(masks) + 1)):
        return None
    return str(_PLACEHOLDER.sub(lambda m: masks[int(m[1]) - 1], translated))


def masks_of(text: str) -> list[str]:
    """Everything in a text that must come through translation unchanged.

    >>> masks_of("Write to joe@example.com, #NAME#, for ¥400 😂")
    ['joe@example.com', '#NAME#', '¥400', '😂']
    """
    return [match[0] for match in _MASK.finditer(text)]


def has_letters(text: str) -> bool:
    """Whether there is anything to translate.

    >>> [has_letters(t) for t in ("7", "😂😂", "?!", "ok", "加")]
    [False, False, False, True, True]
    """
    return _LETTER.search(text) is not None


def clean(text: str, language: str) -> str:
    """NFC, without control tokens (``__eou__``, ``<speaker1>``, ``</s>``), detokenised, single blanks, stripped.

    >>> clean("<speaker1> Gosh , you ' re right ! __eou__", "en")
    "Gosh, you're right!"
    """
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = (
        "".join(c for c in text if c in "\n\t" or unicodedata.category(c) != "Cc") if not text.isprintable() else text
    )
    text = _CONTROL.sub(" ", text)
    text = _BREAKS.sub("\n", _BLANKS.sub(" ", text))
    return detokenise(text.strip(), language)


_BLANKS = regex.compile(r"[^\S\n]+")
_BREAKS = regex.compile(r" ?\n\s*")
_RULES: list[tuple[regex.Pattern[str], str]] = [
    (regex.compile(p), r)
    for p, r in (
        (r"[´`](?=\s?(?:[smdt]|re|ve|ll)\b)", "'"),
        (r"(?<=\b[IiYy]|\w\w) ?(['’]) ?(m|s|re|ve|ll|d|Ve|Re|Ll)\b(?!')", r"\1\2"),
        (r"(?<=\w)n (['’]) ?t\b|(?<=\w) n(['’])t\b", r"n\1\2t"),
        (r"\b([Oo]) ' ?clock\b", r"\1'clock"),
        (r"\b([Gg]on|[Ww]an) na\b", r"\1na"),
        (r"(?<=\d) : (?=\d\d\b)", ":"),
        (r"(?<=\b\d{1,3}) , (?=\d{3}\b)", ","),
        (r"([$€£¥]) (?=\d)", r"\1"),
        (r"(?<=\d) %", "%"),
        (r"\. \. \.", "..."),
        (r" (?=[,.](?:\s|$|[\"'”’)]))", ""),
        (r"(?<=\w) (?=\.\.\.)", ""),
        (r"([(\[“]) (?=\S)", r"\1"),
        (r"(?<=\S) (?=[)\]”](?:[\s.,!?;:]|$))", ""),
        (r'(?<!\S)" ([^"]*?) "(?!\S)', r'"\1"'),
    )
]
_MARKS = regex.compile(r" +(?=[!?]+(?:[\s\"'”’)]|$)|[;:](?:\s|$))")


def detokenise(text: str, language: str = "en") -> str:
    """Undo the blanks that tokenised corpora put around punctuation and apostrophes.

    French keeps its blank before ``! ? ; :``.  Text that was never tokenised does not change.

    >>> detokenise("I ' m afraid I can ' t , Tom . Is it 10 : 30 ?")
    "I'm afraid I can't, Tom. Is it 10:30?"
    >>> detokenise("Tu viens ?", "fr"), detokenise("It's fine :)", "en")
    ('Tu viens ?', "It's fine :)")
    """
    if " " not in text:
        return text
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text if language.startswith("fr") else _MARKS.sub("", text)


def split_sentences(text: str, language: str) -> list[str]:
    """Sentences with the blanks that follow them: joined they are the text.

    A sentence over ``MAX_WORDS`` words comes in parts, cut after a comma or else at a blank.

    >>> split_sentences("The lost parcel is at your place? The whole street is looking for it.", "en")
    ['The lost parcel is at your place? ', 'The whole street is looking for it.']
    >>> split_sentences("Dr. Hill left at 5 p.m. on Monday.", "en")
    ['Dr. Hill left at 5 p.m. on Monday.']
    """
    parts: list[str] = []
    for line in text.splitlines(keepends=True):
        for sentence in _split_line(line, language):
            parts.extend(_parts(sentence, language))
    return parts


def _split_line(line: str, language: str) -> list[str]:
    """Split one line; only stretches with a doubtful full stop (an abbreviation?) cost a call of the library."""
    sentences: list[str] = []
    start, doubtful, base = 0, False, language.partition("-")[0]
    for match in _TERMINATOR.finditer(line):
        if match.end() == len(line):
            break
        word = line[line.rfind(" ", 0, match.start()) + 1 : match.start()] if match[0][0] == "." else ""
        if base in _PYSBD and word and _ABBREVIATION.fullmatch(word):
            doubtful = True
        elif base not in _PYSBD and (len(word) == 1 or word.lower() in _TITLES):
            continue
        elif match[0][0] in "。！？｡" or _OPENING.match(line, match.end()):
            sentences += _resolve(line[start : match.end()], base, doubtful)
            start, doubtful = match.end(), False
    return sentences + _resolve(line[start:], base, doubtful)


def _resolve(stretch: str, base: str, doubtful: bool) -> list[str]:
    if doubtful:
        sentences = _segmenter(base)(stretch)
        if "".join(sentences) == stretch:
            return sentences
    return [stretch] if stretch else []


@functools.cache
def _segmenter(language: str) -> Callable[[str], list[str]]:
    import pysbd

    segment: Callable[[str], list[str]] = pysbd.Segmenter(language=language, clean=False).segment
    return segment


def _parts(sentence: str, language: str) -> list[str]:
    """A sentence that is too long, in parts of at most ``MAX_WORDS`` words (or ``MAX_UNSPACED`` characters)."""
    if len(sentence) <= MAX_UNSPACED:
        return [sentence]
    words = regex.findall(r"\S+\s*|\s+", sentence)
    if len(words) <= MAX_WORDS and max(map(len, words)) <= 2 * MAX_UNSPACED:
        return [sentence]
    parts: list[str] = []
    current: list[str] = []
    for word in words:
        if len(current) >= MAX_WORDS:
            cut = max((i for i, w in enumerate(current, 1) if w.rstrip()[-1:] in ",;:"), default=0)
            cut = cut if cut >= MAX_WORDS // 2 else len(current)
            parts.append("".join(current[:cut]))
            current = current[cut:]
        if len(word) > 2 * MAX_UNSPACED and not language_of(language).spaced:
            parts.extend(filter(None, ["".join(current)]))
            pieces = regex.findall(rf"[^，、；]{{1,{MAX_UNSPACED}}}[，、；]*", word) or [word]
            parts.extend(pieces if "".join(pieces) == word else [word])
            current = []
        else:
            current.append(word)
    return parts + (["".join(current)] if current else [])


def _edges(before: str, body: str, pieces: list[Piece]) -> None:
    """Append a sentence as pieces: emoji at its edges are copied, the middle is sent where it has letters."""
    lead = _EDGE.match(body)
    middle = body[lead.end() :] if lead else body
    tail = _TAIL.search(middle)
    trail = middle[tail.start() :] if tail else ""
    middle = middle[: tail.start()] if tail else middle
    if lead:
        pieces.append(Piece(lead[0].strip(), before, False, lead[0].strip()))
        before = lead[0][len(lead[0].rstrip()) :]
    text = middle.rstrip()
    if text:
        pieces.append(_piece(text, before))
        before = middle[len(text) :]
    if trail.strip():
        mark = trail.strip()
        pieces.append(Piece(mark, before + trail[: trail.index(mark)], False, mark))


def _piece(text: str, before: str) -> Piece:
    masks: list[str] = []

    def hide(match: regex.Match[str]) -> str:
        masks.append(match[0])
        return f"XQ{len(masks)}X"

    protected = text if _PLACEHOLDER.search(text) else _MASK.sub(hide, text)
    if not has_letters(_PLACEHOLDER.sub("", protected) if masks else protected):
        return Piece(text, before, False, text)
    return Piece(text, before, True, protected, tuple(masks))
