"""The core of ``translate``: items in, one translation a turn out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mdialeval.cache import Cache
from mdialeval.errors import BackendError, DataError
from mdialeval.records import Dialogue, Example, Turn
from mdialeval.translate.dummy import Dummy
from mdialeval.translate.route import make_route
from mdialeval.translate.turns import rebuild, translate_items

ODD = [
    "4417-0032",
    "😂😂",
    "?!",
    "",
    "None",
    "今日は",
    "مرحبا",
    "<speaker1> Hi, #NAME#! </s><s> Bye. 😂",
    "a\nb",
    "Hello there.",
]


def dialogue(*texts: str, id: str = "d1") -> Dialogue:
    return Dialogue(id, "en", tuple(Turn(t, "AB"[i % 2]) for i, t in enumerate(texts)))


class Spy:
    """Counts what it is asked, answers with ``answer``."""

    placeholders = True

    def __init__(self, answer: dict[str, str] | None = None, again: dict[str, str] | None = None) -> None:
        self.identity, self.seen = "spy/1", list[str]()
        self.answer, self.again = answer or {}, again or {}

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        self.seen += texts
        return [self.answer.get(t, f"sim {t}") for t in texts]


class Retries(Spy):
    def retry(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        return [self.again.get(t, self.answer.get(t, t)) for t in texts]


def test_one_translation_a_turn_whatever_the_turn() -> None:
    items = [dialogue(*ODD), Example("e1", "en", (Turn("Hi."),), Turn("Hello."), {"u": 1.0}, "g", "s")]
    made = translate_items(items, Dummy(), "en", "pt")
    assert [t.id for t in made] == [f"d1#{i}" for i in range(len(ODD))] + ["e1#0", "e1#1"]
    assert [t.status for t in made[:4]] == ["passthrough"] * 4
    assert [t.hypothesis for t in made[:4]] == ODD[:4]
    assert "#NAME#" in made[7].hypothesis and made[7].hypothesis.endswith("😂")
    assert "speaker" not in made[7].source + made[7].hypothesis


def test_rebuild_keeps_turns_speakers_and_ratings() -> None:
    item = Example("e1", "en", (Turn("Hi.", "A"),), Turn("Hello.", "B"), {"u": 1.0}, "g", "s")
    built = rebuild(item, translate_items([item], Dummy(), "en", "pt-BR"))
    assert isinstance(built, Example)
    assert (built.id, built.language, built.source_id) == ("e1", "pt", "e1")
    assert (built.ratings, built.group, built.system) == ({"u": 1.0}, "g", "s")
    assert built.context[0].speaker == "A" and built.response == Turn("Uryybpt.", "B")


def test_rebuild_refuses_another_number_of_turns() -> None:
    item = dialogue("Hi.", "Hello.")
    made = translate_items([item], Dummy(), "en", "pt")
    with pytest.raises(DataError, match="2 turns"):
        rebuild(item, made[:1])


def test_distinct_sentences_once_and_not_again_from_the_cache(tmp_path: Path) -> None:
    items = [dialogue("Yes. I see.", "Yes.", "I see.", id=f"d{i}") for i in range(5)]
    spy = Spy()
    with Cache(tmp_path / "cache.sqlite", "t") as cache:
        first = translate_items(items, spy, "en", "pt", cache=cache)
        assert sorted(spy.seen) == ["I see.", "Yes."]
        assert translate_items(items, spy, "en", "pt", cache=cache) == first
        assert len(spy.seen) == 2
        translate_items([dialogue("I see. Yes.")], spy, "en", "pt", cache=cache)
        assert len(spy.seen) == 2  # a new turn of known sentences
    spy.identity = "spy/2"
    with Cache(tmp_path / "cache.sqlite", "t") as cache:
        translate_items(items, spy, "en", "pt", cache=cache)
    assert len(spy.seen) == 4  # another engine never answers for this one


@pytest.mark.parametrize("batch_size", [1, 2, 7, 64])
def test_a_bad_sentence_stands_alone(batch_size: int, tmp_path: Path) -> None:
    items = [dialogue("One.", "Two. Bad one.", "Three.", "Four.", "Five.")]
    with Cache(tmp_path / "c.sqlite", "t") as cache:
        made = translate_items(items, Dummy(fail_on="Bad"), "en", "pt", cache=cache, batch_size=batch_size)
        assert [t.status for t in made] == ["ok", "failed", "ok", "ok", "ok"]
        assert made[1].hypothesis == "" and [f.name for f in made[1].flags] == ["failed"]
        assert rebuild(items[0], made) is None
        again = translate_items(items, Dummy(), "en", "pt", cache=cache, batch_size=batch_size)
    assert [t.status for t in again] == ["ok"] * 5  # the failure was not cached


def test_a_dead_engine_and_too_many_failures_stop() -> None:
    items = [dialogue(*(f"Bad {w} one." for w in "abcdefgh"), "Good.")]
    with pytest.raises(BackendError, match="not answered once"):
        translate_items(items, Dummy(fail_on="Bad"), "en", "pt")
    items = [dialogue("Good.", *(f"Bad {w} one." for w in "abcdefgh"))]
    with pytest.raises(BackendError, match="max_failures"):
        translate_items(items, Dummy(fail_on="Bad"), "en", "pt", max_failures=3, batch_size=1)


def test_lost_placeholders_are_sent_again_plain() -> None:
    spy = Spy({"Hi, XQ1X!": "Oi!", "Hi, #NAME#!": "Oi, #NAME#!", "Bye, XQ1X.": "Adeus.", "Bye, #CITY#.": "Adeus."})
    made = translate_items([dialogue("Hi, #NAME#!", "Bye, #CITY#.")], spy, "en", "pt")
    assert made[0].hypothesis == "Oi, #NAME#!" and made[0].flags == ()
    assert [(f.name, f.value) for f in made[1].flags] == [("tags", 1.0)]


def test_a_loop_is_tried_once_more() -> None:
    loop = "o carro " * 12
    texts = ["Please add the file.", "The printer is broken."]
    spy = Retries(dict.fromkeys(texts, loop), {texts[0]: "Por favor, adicione o arquivo."})
    made = translate_items([dialogue(*texts)], spy, "en", "pt")
    assert made[0].hypothesis == "Por favor, adicione o arquivo." and made[0].flags == ()
    assert made[1].flags[0].name == "loop"
    kept = translate_items([dialogue(*texts)], spy, "en", "pt", on_flag={"loop": "keep"})
    assert kept[0].hypothesis == loop.strip()


def test_back_translation() -> None:
    made = translate_items([dialogue("Hello there.", "42")], Dummy(), "en", "pt", back=Dummy())
    assert made[0].back is not None and made[0].back != made[0].hypothesis
    assert made[1].back == "42"


def test_legs_share_their_work(tmp_path: Path) -> None:
    with Cache(tmp_path / "c.sqlite", "t") as cache:
        translate_items([dialogue("Hello.")], make_route("dummy:en-pt", "en", "pt"), "en", "pt", cache=cache)
        route = make_route("dummy:en-pt > dummy:pt-es", "en", "es")
        (made,) = translate_items([dialogue("Hello.")], route, "en", "es", cache=cache)
    assert made.backend == "dummy:en-pt > dummy:pt-es"
    assert made.hypothesis == route.translate(["Hello."], "en", "es")[0]


def test_no_items() -> None:
    assert translate_items([], Dummy(), "en", "pt") == []


def test_five_thousand_words() -> None:
    (made,) = translate_items([dialogue("word " * 5000)], Dummy(), "en", "pt")
    assert len(made.hypothesis.split()) == 5000
