"""Flags: what is raised, what is not, and what happens then."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from mdialeval.errors import ConfigError
from mdialeval.records import Flag
from mdialeval.translate.checks import FLAGS, check, dropped, policies, weight


def flags(source: str, hypothesis: str, languages: str = "en-pt") -> list[str]:
    return [flag.name for flag in check(source, hypothesis, *languages.split("-"))]


@pytest.mark.parametrize(
    ("source", "hypothesis", "languages", "flag"),
    [
        ("今天不行", "今天不行", "zh-en", "copied_source"),
        ("How are you doing today?", "how are you doing today", "en-pt", "copied_source"),
        ("Please send me the new file soon.", "Please send me the new file soon, ok", "en-pt", None),
        ("How are you?", "...", "en-pt", "empty"),
        ("Please add the file.", "o carro o carro o carro o carro", "en-pt", "loop"),
        ("Please add the file.", "文件文件文件文件文件文件", "en-zh", "loop"),
        ("That is great.", "Isso é ótimooooooooooooooooo.", "en-pt", "loop"),
        (
            "I told you that I would come on Monday, but then my car broke down and I had to stay at home.",
            "Eu disse.",
            "en-pt",
            "truncated",
        ),
        ("How are you doing today?", "Aap kaise hain aaj bhai?", "en-hi", "wrong_script"),
        ("How are you doing today?", "你今天好吗？", "en-de", "wrong_script"),
        (
            "I do not know where the train station is.",
            "No sé dónde está la estación de tren.",
            "en-pt",
            "wrong_language",
        ),
        ("It costs 4500 euros.", "Custa 450 euros.", "en-pt", "number_mismatch"),
        ("We are happy.", "Somos 7 felizes.", "en-pt", "number_mismatch"),
        ("Hi, #NAME#!", "Oi, #NOME#!", "en-pt", "tags"),
        ("See https://a.io/x now 😂", "Veja agora", "en-pt", "tags"),
        ("Is it yours? The street is looking for it.", "A rua está procurando por isso.", "en-pt", "sentence_count"),
        ("How are you, sir?", "Eu queria muito saber como é que você está hoje, senhor", "en-pt", "length_ratio"),
    ],
)
def test_raised(source: str, hypothesis: str, languages: str, flag: str | None) -> None:
    found = flags(source, hypothesis, languages)
    assert flag in found if flag else "copied_source" not in found


@pytest.mark.parametrize(
    ("source", "hypothesis", "languages"),
    [
        ("OK", "OK", "en-pt"),
        ("John Smith", "John Smith", "en-de"),
        ("42", "42", "en-pt"),
        ("Ok!", "Ok!", "en-de"),
        ("Haha ja", "Haha ja", "de-nl"),
        ("Hello China", "Olá China", "en-pt"),
        ("加", "Plus", "zh-en"),
        ("No, no, no, no, no, no!", "Não, não, não, não, não, não!", "en-pt"),
        ("I have seven cats.", "Eu tenho 7 gatos.", "en-pt"),
        ("It costs 1,000 euros.", "Custa 1.000 euros.", "en-pt"),
        ("I work at Microsoft.", "我在 Microsoft 工作。", "en-zh"),
        ("What is your name?", "お名前は何ですか？", "en-ja"),
        ("Of course I remember you.", "Claro que me lembro de você.", "en-pt"),
        ("Really? I did not see anything.", "真的吗？我什么都没看到。", "en-zh"),
        ("You are right.", "أنت محق.", "en-ar"),
    ],
)
def test_not_raised(source: str, hypothesis: str, languages: str) -> None:
    assert flags(source, hypothesis, languages) == []


def test_every_flag_has_a_sentence_and_a_value() -> None:
    found = [
        *check("How are you doing today?", "How are you doing today?", "en", "pt"),
        *check("It costs 4500 euros.", "Custa 450 euros.", "en", "pt"),
    ]
    assert all(flag.name in FLAGS and flag.value is not None and flag.detail for flag in found)
    assert all(kind.rule and kind.value for kind in FLAGS.values())


def test_policies() -> None:
    assert dropped([Flag("tags", 1.0)]) is None
    assert dropped([Flag("tags", 1.0), Flag("copied_source", 1.0)]) == "copied_source"
    assert dropped([Flag("tags", 1.0)], {"tags": "drop"}) == "tags"
    with pytest.raises(ConfigError, match="did you mean 'tags'"):
        policies({"tag": "drop"})


def test_weights_compare_scripts() -> None:
    assert weight("hello") == 5 and weight("你好") == 6 and weight("はい") == 4 and weight("네") == 2.5


def test_real_translations(shared_data: Path) -> None:
    """Nearly all of a published translation stays, and its Chinese responses without a Han character are found."""
    name = next((shared_data / "dialevalml").glob("*.csv"))
    rows = list(csv.DictReader(name.open(encoding="utf-8")))
    for language in ("pt", "de", "fr", "es", "zh", "ja"):
        lost = [r for r in rows if dropped(check(r["src"], r[language], "en", language))]
        assert len(lost) <= 9, [(r["src"], r[language]) for r in lost]
