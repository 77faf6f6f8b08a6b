"""Spellings in, spellings out."""

from __future__ import annotations

import pytest

from mdialeval.errors import ConfigError
from mdialeval.languages import canonical, covered, pair
from mdialeval.translate.route import check_routes, make_route, parse_route
from mdialeval.translate.spellings import apertium, m2m100, madlad, marian, nllb, rows


@pytest.mark.parametrize("code", ["zh", "zh-CN", "zh_CN", "zho_Hans", "cmn", "chinese", "Chinese", "ZH"])
def test_spellings_of_chinese(code: str) -> None:
    assert canonical(code) == "zh"


@pytest.mark.parametrize("code", ["pt", "pt_BR", "PT-br", "pb", "portuguese", "por_Latn"])
def test_spellings_of_portuguese(code: str) -> None:
    assert canonical(code) == "pt"


@pytest.mark.parametrize("code", ["ge", "xx", "", "qqqqqq", "jp"])
def test_unknown_codes(code: str) -> None:
    with pytest.raises(ConfigError):
        canonical(code)


def test_pairs_and_coverage() -> None:
    assert pair("en_zh") == ("en", "zh") and pair("eng-spa") == ("en", "es") and pair("pt-PT-es") == ("pt-PT", "es")
    with pytest.raises(ConfigError, match="write it as en-pt"):
        pair("english")
    assert not covered("tlh") and covered("nb") and covered("zh-Hant")


def test_each_engine_has_its_own_spelling() -> None:
    assert [f("zh") for f in (nllb, m2m100, madlad)] == ["zho_Hans", "zh", "<2zh>"]
    assert marian("zh")[0] == ">>cmn_Hans<<" and apertium("es") == ("es", "spa")
    table = {row.code: row for row in rows()}
    assert len(table) > 50 and "Simplified" in table["zh"].note and "Brazilian" in table["pt"].note


@pytest.mark.parametrize(
    ("route", "target", "message"),
    [
        ("fierfox", "pt", "did you mean 'firefox'"),
        ("dummy:en-pt > dummy:es-fr", "fr", "takes 'es', but dummy gives 'pt'"),
        ("dummy:de-pt", "pt", "takes 'de', but the corpus is 'en'"),
        ("dummy:en-pt", "fr", "ends in 'pt', but 'fr' was asked for"),
        ("dummy:en-ge", "fr", "not a pair"),
        ("dummy > dummy", "fr", "say between which languages"),
        ("", "fr", "write it as"),
        ("dummy:en-pt >", "fr", "write it as"),
    ],
)
def test_wrong_routes(route: str, target: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_route(route, "en", target)


def test_all_problems_at_once() -> None:
    assert len(check_routes({"pt": "fierfox", "fr": "dummy:en-pt", "es": "dummy"}, "en")) == 2


def test_neighbours_fill_in_a_pair() -> None:
    assert [(s.source, s.target) for s in parse_route("dummy > dummy:pt-es > dummy", "en", "fr")] == [
        ("en", "pt"), ("pt", "es"), ("es", "fr")]  # fmt: skip
    assert parse_route("their.module:Engine:en-pt", "en", "pt")[0].engine == "their.module:Engine"
    assert parse_route("their.module:Engine", "en", "pt")[0].engine == "their.module:Engine"
