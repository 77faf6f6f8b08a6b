"""Language codes: one canonical BCP-47 spelling inside the project, whatever a corpus or an engine writes.

Canonical means the shortest tag with the same likely script and region (CLDR), so ``zh``, ``zh-CN``, ``zho_Hans``,
``cmn`` and ``chinese`` are all ``zh`` (Simplified, as CLDR's default), and ``pt_BR`` is ``pt`` while ``pt-PT`` stays.
"""

from __future__ import annotations

import difflib
import functools
import re
from dataclasses import dataclass

import langcodes

from mdialeval.errors import ConfigError

UNSPACED = frozenset({"zh", "ja", "th", "lo", "km", "my", "yue", "bo"})
"""Languages whose words are not separated by blanks: tokens are characters there."""

_COMMON = """
ar bg bn ca cs da de el en eo es et eu fa fi fr gl he hi hr hu hy id is it ja ka kk ko lt lv mk ms nb nl nn no oc
pl pt pt-PT ro ru sk sl sq sr sv sw ta te th tl tr uk ur vi zh zh-Hant
"""
COMMON = _COMMON.split()
"""Languages offered as near matches; any other valid code is accepted too."""

_CC100 = """
af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu ha he hi hr hu hy id is it
ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my ne nl no om or pa pl ps pt ro ru sa sd si sk sl so sq
sr su sv sw ta te th tl tr ug uk ur uz vi xh yi zh
"""
XLMR_LANGUAGES = frozenset(_CC100.split())
"""Languages of the CC-100 corpus: what XLM-R, multilingual E5 and the COMET models over them were trained on
(Conneau et al. 2020, table 6)."""

DEFAULTS = {
    "zh": "Simplified, mainland China; write zh-TW or zh-Hant for Traditional",
    "pt": "Brazilian; write pt-PT for European",
    "sr": "Cyrillic; write sr-Latn for Latin",
    "no": "Norwegian as a whole; write nb or nn for one written standard",
}
"""What a code means that leaves something open."""

_ALIASES = {"pb": "pt-BR", "iw": "he", "cn": "zh", "zhs": "zh-Hans", "zht": "zh-Hant"}
_COVERED_AS = {"nb": "no", "nn": "no", "fil": "tl", "yue": "zh"}


@dataclass(frozen=True, slots=True)
class Language:
    """A language as this project knows it.

    Attributes:
        code: canonical BCP-47.
        name: English name.
        script: ISO 15924 code of its likely script, such as ``Latn``.
        spaced: whether words are separated by blanks.
    """

    code: str
    name: str
    script: str
    spaced: bool


@functools.cache
def language(code: str) -> Language:
    """The language behind any spelling: a tag, an ISO 639-3 code, a FLORES code or an English name.

    Raises:
        ConfigError: nobody knows the code; the message names near matches.

    >>> [language(c).code for c in ("zho_Hans", "zh_CN", "cmn", "Chinese", "pt_BR", "pt-pt", "no")]
    ['zh', 'zh', 'zh', 'zh', 'pt', 'pt-PT', 'no']
    >>> language("ja").spaced, language("ja").script
    (False, 'Jpan')
    """
    tag = _minimal(_parse(code))
    full = langcodes.Language.get(tag)
    return Language(tag, full.display_name(), str(full.maximize().script), full.language not in UNSPACED)


def canonical(code: str) -> str:
    """The canonical BCP-47 code of any spelling; see ``language``.

    >>> canonical("PT-br"), canonical("zh-TW")
    ('pt', 'zh-Hant')
    """
    return language(code).code


def pair(text: str) -> tuple[str, str]:
    """The two languages of a pair, each in any spelling, joined by ``-``, ``_`` or ``>``.

    Raises:
        ConfigError: no split of the text gives two languages.

    >>> pair("en-pt"), pair("en_zh"), pair("zh-Hant-en"), pair("eng_Latn-zho_Hans")
    (('en', 'pt'), ('en', 'zh'), ('zh-Hant', 'en'), ('en', 'zh'))
    """
    borders = [match.start() for match in re.finditer(r"[-_>]", text)]
    for border in borders:
        sides = text[:border], text[border + 1 :]
        if re.match(r"[A-Za-z]{4}(?![A-Za-z])|[A-Z]{2}[-_>]", sides[1]):
            continue  # a script or a region belongs to the language before it
        try:
            return canonical(sides[0]), canonical(sides[1])
        except ConfigError:
            continue
    raise ConfigError(f"{text!r} is not a pair of languages: write it as en-pt")


def covered(code: str) -> bool:
    """Whether XLM-R's vocabulary and training corpus cover a language; others get numbers that mean nothing.

    >>> covered("pt-PT"), covered("zh-TW"), covered("tlh")
    (True, True, False)
    """
    base = canonical(code).partition("-")[0]
    return _COVERED_AS.get(base, base) in XLMR_LANGUAGES


def _parse(code: str) -> langcodes.Language:
    text = code.strip()
    text = _ALIASES.get(text.lower(), text)
    if not text:
        raise ConfigError("the language code is empty")
    try:
        found = langcodes.Language.get(langcodes.standardize_tag(text, macro=True))
    except ValueError:  # langcodes' LanguageTagError
        found = None
    if found is not None and found.is_valid() and found.language not in (None, "und"):
        return found
    if len(text) > 3:  # shorter text is a mistyped code: "ge" must not become the language called Ge
        try:
            return langcodes.Language.get(langcodes.standardize_tag(str(langcodes.find(text)), macro=True))
        except LookupError:
            pass
    raise ConfigError(f"unknown language {code!r}: {_suggest(text)}")


def _minimal(tag: langcodes.Language) -> str:
    """The shortest of language, language-Script, language-Region that maximises to the same tag."""
    full = tag.maximize()
    for candidate in (
        langcodes.Language.make(language=tag.language),
        langcodes.Language.make(language=tag.language, script=full.script),
        langcodes.Language.make(language=tag.language, territory=full.territory),
    ):
        same = candidate.maximize()
        if (same.script, same.territory) == (full.script, full.territory):
            return candidate.to_tag()
    return tag.to_tag()


def _suggest(text: str) -> str:
    """Near matches: names that begin alike, close names, and the main language of a country code (``jp``)."""
    names = {langcodes.Language.get(code).display_name().lower(): code for code in COMMON}
    lowered = text.lower()
    found = [name for name in names if name.startswith(lowered)]
    found += difflib.get_close_matches(lowered, names, n=3, cutoff=0.6)
    if len(text) == 2:
        spoken = langcodes.Language.make(territory=text.upper()).maximize().language
        found += [name for name, code in names.items() if code == spoken]
    near = [f"{names[name]} ({name.title()})" for name in dict.fromkeys(found)]
    return "did you mean " + " or ".join(near[:4]) + "?" if near else "use a BCP-47 code such as en, pt, zh, de"
