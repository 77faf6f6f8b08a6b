"""How each engine spells a language: the one table for NLLB (FLORES), M2M100, MADLAD, Marian, apertium and Firefox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import langcodes

from mdialeval.languages import COMMON, DEFAULTS, canonical, covered, language

_FLORES = {
    "ar": "arb_Arab",
    "az": "azj_Latn",
    "et": "est_Latn",
    "fa": "pes_Arab",
    "fil": "tgl_Latn",
    "ja": "jpn_Jpan",
    "ko": "kor_Hang",
    "ku": "kmr_Latn",
    "lv": "lvs_Latn",
    "mg": "plt_Latn",
    "mn": "khk_Cyrl",
    "ms": "zsm_Latn",
    "ne": "npi_Deva",
    "no": "nob_Latn",
    "om": "gaz_Latn",
    "or": "ory_Orya",
    "ps": "pbt_Arab",
    "sq": "als_Latn",
    "sw": "swh_Latn",
    "tl": "tgl_Latn",
    "uz": "uzn_Latn",
    "yi": "ydd_Hebr",
}
_M2M100 = {"nb": "no", "nn": "no", "fil": "tl"}
_MARIAN = {"zh": ("cmn_Hans", "zho_Hans", "cmn", "zho", "zh"), "zh-Hant": ("cmn_Hant", "zho_Hant", "cmn", "zho", "zh")}
_FIREFOX = {"no": "nb", "zh-Hant": "zh_hant"}


class LanguageRow(NamedTuple):
    """One line of ``mdialeval languages``.

    Attributes:
        nllb, m2m100, madlad, marian: the spelling that the model family uses (whether one checkpoint knows it is
            checked when it is loaded).
        covered: whether XLM-R and the encoders over its vocabulary were trained on it.
        from_english: engines that translate English into it on this machine, as it is set up now.
        note: what an open code means.
    """

    code: str
    name: str
    script: str
    nllb: str
    m2m100: str
    madlad: str
    marian: str
    covered: bool
    from_english: tuple[str, ...]
    note: str


def nllb(code: str) -> str:
    """The FLORES-200 code that NLLB uses.

    >>> [nllb(c) for c in ("pt", "zh", "zh-TW", "ar", "sr", "de")]
    ['por_Latn', 'zho_Hans', 'zho_Hant', 'arb_Arab', 'srp_Cyrl', 'deu_Latn']
    """
    code = canonical(code)
    base = code.partition("-")[0]
    return _FLORES.get(code) or _FLORES.get(base) or f"{_alpha3(base)}_{language(code).script}"


def m2m100(code: str) -> str:
    """The code inside M2M100's ``__pt__`` tokens.

    >>> m2m100("pt-PT"), m2m100("nb")
    ('pt', 'no')
    """
    base = canonical(code).partition("-")[0]
    return _M2M100.get(base, base)


def madlad(code: str) -> str:
    """MADLAD-400's token for the target language.

    >>> madlad("pt"), madlad("zh-TW")
    ('<2pt>', '<2zh_Hant>')
    """
    return f"<2{canonical(code).partition('-')[0]}{'_Hant' if canonical(code) == 'zh-Hant' else ''}>"


def marian(code: str) -> Sequence[str]:
    """Target tokens of multilingual OPUS-MT models, the likeliest first.

    >>> marian("pt")
    ('>>por<<', '>>pt<<')
    """
    code = canonical(code)
    base = code.partition("-")[0]
    region = code.replace("-", "_")
    names = _MARIAN.get(code) or tuple(dict.fromkeys((_alpha3(base), region, base)))
    return tuple(f">>{name}<<" for name in names)


def apertium(code: str) -> tuple[str, ...]:
    """The names that apertium's modes use: two letters or three.

    >>> apertium("pt")
    ('pt', 'por')
    """
    base = canonical(code).partition("-")[0]
    return tuple(dict.fromkeys((base, _alpha3(base))))


def firefox(code: str) -> str:
    """The code in the names of Firefox's models."""
    code = canonical(code)
    return _FIREFOX.get(code, code.partition("-")[0])


def rows(codes: Sequence[str] = ()) -> list[LanguageRow]:
    """The table of languages: all common ones, or those that are given."""
    from mdialeval.translate.route import known_pairs

    pairs = {name: known_pairs(name) or frozenset() for name in ("firefox", "apertium")}
    table: list[LanguageRow] = []
    for code in map(canonical, codes or COMMON):
        known = language(code)
        engines = tuple(name for name, there in pairs.items() if ("en", code) in there)
        spelled = (nllb(code), m2m100(code), madlad(code), marian(code)[0])
        table.append(
            LanguageRow(code, known.name, known.script, *spelled, covered(code), engines, DEFAULTS.get(code, ""))
        )
    return table


def _alpha3(base: str) -> str:
    try:
        return langcodes.Language.get(base).to_alpha3()
    except LookupError:
        return base
