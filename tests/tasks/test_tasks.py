"""Training pairs: what is drawn, how often, and that a draw belongs to its item."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdialeval.errors import ConfigError, DataError
from mdialeval.records import Dialogue, Example, Turn
from mdialeval.registry import create
from mdialeval.tasks.draws import normal
from mdialeval.tasks.perturb import corrupt, drop, drop_final_mark, keep_valid, reorder, repeat
from mdialeval.tasks.protocol import TASKS
from mdialeval.tasks.sensibleness import Sensibleness
from mdialeval.tasks.tokens import Token, recapitalise, text_of, tokens_of
from mdialeval.tasks.understandability import Understandability

SENTENCE = "When does the next train to the old harbour leave, and do I need a seat?"


def dialogues(n: int = 60, language: str = "en") -> list[Dialogue]:
    rng = random.Random(7)
    words = [
        "river",
        "table",
        "green",
        "walk",
        "seven",
        "music",
        "window",
        "ask",
        "never",
        "bring",
        "paper",
        "cold",
        "listen",
        "market",
        "early",
    ]

    def turn(n_words: int) -> Turn:
        return Turn(" ".join(rng.choices(words, k=n_words)).capitalize() + ".")

    return [Dialogue(f"d{i}", language, tuple(turn(rng.randint(3, 14)) for _ in range(5))) for i in range(n)]


@pytest.mark.parametrize("name", TASKS)
def test_contract(name: str) -> None:
    items = dialogues(20)
    odd = Dialogue("odd", "en", (Turn("😂😂"), Turn("?!"), Turn("مرحبا بك اليوم"), Turn("ok")))
    task = create("task", TASKS, name)
    first, second = list(task.pairs([*items, odd], 3)), list(task.pairs([*items, odd], 3))
    assert first == second
    assert {p.label for p in first} == {0.0, 1.0}
    assert len({p.id for p in first}) == len(first)
    assert list(task.pairs([], 3)) == []
    assert [p for p in first if p.label != 1] != [p for p in task.pairs([*items, odd], 4) if p.label != 1]
    shuffled = [*items, odd]
    random.Random(1).shuffle(shuffled)
    assert sorted(first, key=lambda p: p.id) == sorted(task.pairs(shuffled, 3), key=lambda p: p.id)


def test_understandability_draws_belong_to_the_text() -> None:
    items, task = dialogues(20), Understandability()
    alone = [p for item in items for p in task.pairs([item], 3)]
    assert alone == list(task.pairs(items, 3))


def test_negatives_are_never_true_responses() -> None:
    context = (Turn("How are you?"),)
    answers = ["Fine, thanks.", "fine thanks", "Could be better!", "I am well.", "Very well, and you?"]
    same = [Dialogue(f"s{i}", "en", (*context, Turn(a))) for i, a in enumerate(answers)]
    other = dialogues(3)
    pairs = list(Sensibleness(negatives=3).pairs([*same, *other], 1))
    true = {normal(a) for a in answers}
    for pair in pairs:
        if pair.kind == "random" and pair.context == context:
            assert normal(pair.response.text) not in true
    assert Counter(p.kind for p in pairs) == {"true_next": 5 + 12, "random": 3 * 17}


def test_negatives_come_from_other_groups_and_are_not_what_was_just_said() -> None:
    items = dialogues(8)
    twins = [dataclasses.replace(d, id=d.id + "-es", source_id=d.id) for d in items]
    own = {d.id: {t.text for t in d.turns} for d in items}
    for pair in Sensibleness(negatives=4).pairs([*items, *twins], 1):
        if pair.kind == "random":
            assert pair.response.text not in own[pair.group]


def test_length_tells_nothing() -> None:
    pairs = list(Sensibleness(negatives=2).pairs(dialogues(200), 1))
    mean = {
        kind: sum(len(p.response.text) for p in pairs if p.kind == kind) / sum(p.kind == kind for p in pairs)
        for kind in ("true_next", "random")
    }
    assert mean["random"] == pytest.approx(mean["true_next"], rel=0.03)
    by_id = {p.id: p for p in pairs}
    off = [abs(len(p.response.text) - len(by_id[p.id.partition("/")[0]].response.text)) for p in pairs if not p.label]
    assert sorted(off)[int(0.9 * len(off))] <= 8


def test_labelled_examples_bring_their_own_negatives() -> None:
    def rated(name: str, label: float, system: str, group: str) -> Example:
        ratings = {"sensibleness": label}
        return Example(name, "en", (Turn(f"Context {group}."),), Turn(f"Text {name}."), ratings, group, system)

    items = [rated("p0", 1, "positive", "g0"), rated("a0", 0, "adversarial", "g0"), rated("r0", 0, "random", "g0"),
             rated("p1", 1, "positive", "g1")]  # fmt: skip
    assert Counter(p.kind for p in Sensibleness().pairs(items, 1)) == {"true_next": 2, "adversarial": 1, "random": 1}
    chosen = Counter(p.kind for p in Sensibleness(given=["adversarial"], labelled=1).pairs(items, 1))
    assert chosen == {"true_next": 2, "adversarial": 1, "random": 2}
    assert {p.kind for p in Sensibleness(broken=1.0).pairs(items, 1)} - {"true_next", "adversarial", "random"} <= {
        "word_drop", "word_reorder", "word_repeat"}  # fmt: skip


def test_unlabelled_example_is_a_true_next_turn() -> None:
    kept = [Example(f"t{i}", "pt", (Turn(f"Olá {i}!"),), Turn(f"Tudo bem {i}?"), group=f"g{i}") for i in range(4)]
    assert Counter(p.label for p in Sensibleness().pairs(kept, 1)) == {1.0: 4, 0.0: 4}


def test_one_group_offers_no_negative() -> None:
    with pytest.raises(DataError, match="no other dialogue group"):
        list(Sensibleness().pairs(dialogues(1), 1))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sensibleness", {"broken": 2}),
        ("sensibleness", {"negatives": -1}),
        ("understandability", {"negative": 1.5}),
        ("understandability", {"strength": 0}),
        ("sensibleness", {"negative": 3}),
    ],
)
def test_wrong_options(name: str, options: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=rf"task '{name}'"):
        create("task", TASKS, name, options)


def test_published_odds() -> None:
    tokens = tokens_of(SENTENCE, "en")
    kinds = Counter(corrupt(tokens, random.Random(i))[0] for i in range(4000))  # type: ignore[index]
    shares = {k: v / 4000 for k, v in kinds.items()}
    assert shares == pytest.approx({"word_reorder": 0.3, "word_drop": 0.3, "word_repeat": 0.4}, abs=0.025)
    kept = Counter(keep_valid(tokens, "en", random.Random(i))[0] for i in range(4000))
    expected = {"unchanged": 0.7, "no_final_mark": 0.1, "simplified": 0.1, "no_function_words": 0.1}
    assert {k: v / 4000 for k, v in kept.items()} == pytest.approx(expected, abs=0.02)


def test_half_of_the_long_texts_are_negative_and_no_short_one() -> None:
    items = [Dialogue(f"d{i}", "en", (Turn(f"{SENTENCE} {i}"), Turn(f"Ok{i}"))) for i in range(2000)]
    pairs = list(Understandability().pairs(items, 5))
    long = [p for p in pairs if len(p.response.text) > 10]
    assert sum(p.label == 0 for p in long) / len(long) == pytest.approx(0.5, abs=0.04)
    assert all(p.label == 1 for p in pairs if p.id.endswith("#1"))
    assert all(p.context == () for p in pairs)


def test_drop_rate_and_repeat_rate_are_the_published_ones() -> None:
    tokens = [Token(f"w{i}", i > 0) for i in range(20)]
    left = sum(len(drop(tokens, random.Random(i)) or []) for i in range(3000)) / (3000 * 20)
    assert 1 - left == pytest.approx(0.26, abs=0.02)  # U(0, .5) given that something was dropped
    said = sum(len(repeat(tokens, random.Random(i)) or []) for i in range(3000)) / 3000 - 20
    assert said == pytest.approx(20 * 0.1 * 1.25 * 1.39 / (1 - 0.9**20), rel=0.1)
    assert sum(len(drop(tokens, random.Random(i), 0.2) or []) for i in range(500)) / 10_000 > 0.9


def test_unspaced_languages_are_perturbed_by_character() -> None:
    text = "你为什么觉得沮丧？"
    pairs = Understandability(negative=0.99).pairs(
        [Dialogue(f"d{i}", "zh", (Turn(text + str(i)),)) for i in range(30)], 1
    )
    broken = [p.response.text for p in pairs if not p.label]
    assert broken
    assert not any(" " in b for b in broken)
    assert text_of(tokens_of(text, "zh")) == text


@pytest.mark.parametrize("code", ["en", "zh", "ja", "ar", "de"])
def test_reordered_text_keeps_its_marks_and_its_capital(code: str) -> None:
    text = {
        "en": "Well, can you come?",
        "zh": "我们，明天见。",
        "ja": "はい、行きます。",
        "ar": "نعم، سأذهب غدا.",
        "de": "Ja, wir kommen.",
    }[code]
    tokens = tokens_of(text, code)
    for seed in range(20):
        moved = reorder(tokens, random.Random(seed))
        assert moved is not None
        written = text_of(recapitalise(moved, tokens))
        assert Counter(written.lower()) == Counter(text.lower())
        assert written != text
        assert written[-1] == text[-1]
        assert not text[0].isupper() or written[0].isupper()


def test_dropping_the_final_mark_does_not_space_out_characters() -> None:
    assert text_of(drop_final_mark(tokens_of("I am here!!", "en")) or []) == "I am here"
    assert drop_final_mark(tokens_of("No mark", "en")) is None
    assert drop_final_mark(tokens_of("?!", "en")) is None


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60), st.sampled_from(["en", "zh", "ja", "ar"]), st.integers(0, 5))
def test_any_text_is_survived(text: str, code: str, seed: int) -> None:
    tokens = tokens_of(text, code)
    assert "".join(text_of(tokens).split()) == "".join(text.split())
    found = corrupt(tokens, random.Random(seed))
    if found is not None:
        assert [t.text for t in found[1]] != [t.text for t in tokens]
        assert found[1]


def test_real_corpus(shared_data: Path) -> None:
    from mdialeval.readers.dailydialogpp import DailyDialogPlusPlus

    items = list(DailyDialogPlusPlus().read([shared_data / "dailydialogpp" / "test.json"]))
    pairs = list(Sensibleness(labelled=1).pairs(items, 1))
    kinds = Counter(p.kind for p in pairs)
    assert kinds["true_next"] == 5710
    assert kinds["adversarial"] == 5685
    answers: dict[str, set[str]] = {}
    for pair in pairs:
        if pair.label:
            answers.setdefault(pair.context[-1].text, set()).add(normal(pair.response.text))
    drawn = [p for p in pairs if "/random-" in p.id]
    assert len(drawn) == 5710
    assert not [p for p in drawn if normal(p.response.text) in answers[p.context[-1].text]]


def test_spliced_negatives_run_on_with_other_texts() -> None:
    items = [*dialogues(30), *dialogues(10, "zh")]
    pairs = list(Understandability(spliced=1.0, negative=0.5).pairs(items, 1))
    spliced = [p for p in pairs if p.kind == "spliced"]
    assert 0.3 < len(spliced) / len(pairs) < 0.55
    assert all(p.label == 0 for p in spliced)
    assert not {p.response.text for p in spliced} & {t.text for d in items for t in d.turns}
    assert {(p.id, p.response) for p in pairs} == {
        (p.id, p.response) for p in Understandability(spliced=1.0).pairs(items[::-1], 1)
    }
