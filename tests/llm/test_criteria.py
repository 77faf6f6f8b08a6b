"""The prompts: every criterion in every language, of one form; fallbacks, versions, and the user's own files."""

from __future__ import annotations

import re
import string
from dataclasses import astuple, fields
from pathlib import Path

import pytest

from mdialeval.errors import ConfigError, DataError
from mdialeval.llm.blocks import Hints, fill
from mdialeval.llm.criteria import FRAME, PROMPTS, Frame, criteria, prompt_text
from mdialeval.records import Example, Turn

LANGUAGES = ("en", "pt", "de", "fr", "es", "zh", "ja")
TURN = "understandability sensibleness naturalness coherence engagingness groundedness appropriateness relevance"
TURN += " content_richness grammatical_correctness"
DIALOGUE = "overall dialogue_coherence likeability informativeness"


def test_the_asked_for_criteria_are_there_in_seven_languages() -> None:
    assert criteria() == sorted([*TURN.split(), *DIALOGUE.split()])
    for level, names in (("turn", TURN), ("dialogue", DIALOGUE)):
        assert {prompt_text(c, "en").criterion.level for c in names.split()} == {level}
    files = {path.relative_to(PROMPTS).as_posix() for path in PROMPTS.rglob("*.toml")}
    assert files == {f"{code}/{name}.toml" for code in LANGUAGES for name in (*criteria(), FRAME)}


@pytest.mark.parametrize("criterion", criteria())
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_prompt_has_the_form_of_the_english_one(criterion: str, language: str) -> None:
    text, english = prompt_text(criterion, language), prompt_text(criterion, "en")
    assert text.language == language
    assert (text.criterion.level, text.criterion.context) == (english.criterion.level, english.criterion.context)
    for part in (text.criterion.question, text.criterion.low, text.criterion.high):
        assert part == part.strip() and part and not re.search(r"[$<>{}\[\]]|\d", part), "the scale is filled in"
    for field in fields(Frame):
        own, other = (string.Template(getattr(t.frame, field.name)).get_identifiers() for t in (text, english))
        assert sorted(own) == sorted(other), field.name
    for low, high in ((1.0, 5.0), (0.0, 9.0)):
        example = Example("e", language, (Turn("Hi"), Turn("Hello")), Turn("How are you?"))
        prompt = fill(text, example, (low, high), hints=Hints(0.87, "(a / amr)"))
        assert "$" not in prompt.system + prompt.user and "0.87" in prompt.user and "(a / amr)" in prompt.user
        assert f"\n{low:g} = {text.criterion.low}\n{high:g} = {text.criterion.high}\n" in prompt.user
        assert prompt.user.index("=") < prompt.user.index("<"), "the question comes before the material"
        assert {f"{low:g}", f"{high:g}"} <= set(re.findall(r"\d+", prompt.user.splitlines()[-1]))
        assert prompt.answer == text.frame.score
        shown = text.criterion.level == "turn" and text.criterion.context
        assert ("<context>" in prompt.user) == shown


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_is_written_in_its_own_words(language: str) -> None:
    texts = [str(v) for c in criteria() for v in astuple(prompt_text(c, language).criterion)[3:]]
    texts += [str(v) for v in astuple(prompt_text("overall", language).frame)]
    english = {str(v) for c in criteria() for v in astuple(prompt_text(c, "en").criterion)[3:]}
    if language != "en":
        assert not english & set(texts)
    scripts = {"zh": r"[\u4e00-\u9fff]", "ja": r"[\u3040-\u30ff\u4e00-\u9fff]"}
    assert all(re.search(scripts.get(language, r"[A-Za-z]"), text) for text in texts)
    assert any(re.search(r"[\u3040-\u30ff]", text) for text in texts) == (language == "ja")


def test_the_two_ends_of_a_scale_differ_and_no_two_criteria_ask_the_same() -> None:
    for language in LANGUAGES:
        asked = [prompt_text(c, language).criterion for c in criteria()]
        assert len({c.question for c in asked}) == len(asked)
        assert all(c.low != c.high for c in asked)


def test_fallbacks_regions_and_versions(tmp_path: Path) -> None:
    assert prompt_text("sensibleness", "pt-PT").language == "pt"
    for criterion in criteria():
        assert prompt_text(criterion, "ko").language == "en", "a language without prompts is asked in English"
    versions = {prompt_text(c, code).version for c in criteria() for code in LANGUAGES}
    assert len(versions) == len(criteria()) * len(LANGUAGES)
    (tmp_path / "en").mkdir()
    text = (PROMPTS / "en" / "overall.toml").read_text(encoding="utf-8")
    (tmp_path / "en" / "overall.toml").write_text(text.replace("Overall quality", "Quality"), encoding="utf-8")
    assert prompt_text("overall", "en", tmp_path).version not in versions, "another wording is another version"


def test_own_prompts_come_first_and_their_faults_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    (folder / "en").mkdir(parents=True)
    own = folder / "en" / "humour.toml"
    own.write_text('level = "turn"\ncontext = true\nquestion = "Funny?"\nlow = "no"\nhigh = "yes"\n', encoding="utf-8")
    assert prompt_text("humour", "de", folder).criterion.question == "Funny?"
    assert "humour" in criteria(folder) and "humour" not in criteria()
    with pytest.raises(ConfigError, match="did you mean 'humour'"):
        prompt_text("humor", "en", folder)
    for broken, message in (
        ("question = 1", "level"),
        ('level = "x"', "context"),
        ("low = ", "TOML"),
        ("lo = 'x'", "did you mean"),
    ):
        other = tmp_path / f"broken-{len(broken)}-{message}"
        (other / "en").mkdir(parents=True)
        (other / "en" / "humour.toml").write_text(broken, encoding="utf-8")
        with pytest.raises(DataError, match=message):
            prompt_text("humour", "en", other)
    with pytest.raises(ConfigError, match="no folder"):
        prompt_text("humour", "en", tmp_path / "absent")
