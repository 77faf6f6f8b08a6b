"""Overlap between data sets, and splits that keep dialogues whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from mdialeval.config.corpus import Source
from mdialeval.errors import ConfigError
from mdialeval.readers import read
from mdialeval.readers.overlap import find_overlap
from mdialeval.readers.splitting import split_groups, split_pairs
from mdialeval.records import Dialogue, Example, TrainingPair, Turn

LONG = "I was thinking about the garden we saw last spring , the one behind the old railway station ."


def example(name: str, *context: str, language: str = "en", group: str = "", source: str | None = None) -> Example:
    return Example(name, language, tuple(map(Turn, context)), Turn(f"Answer {name}."), {}, group, "", source)


def test_case_33_one_dialogue_in_two_languages_is_found_by_group_and_by_source() -> None:
    train = [example("a", "Hola.", language="es", group="d7"), example("x", "Otra cosa.", language="es", group="d1")]
    report = find_overlap(train, [example("b", "Salut.", language="fr", group="d7")])
    assert [(o.kind, o.one, o.other, o.one_language, o.other_language) for o in report.overlaps] == [
        ("group", "a", "b", "es", "fr")
    ]
    assert (report.kinds, report.share) == ({"group": 1}, 0.5)
    dialogue = Dialogue("d7", "en", (Turn("Hello."),))
    translated = Dialogue("d7-fr", "fr", (Turn("Salut."),), "d7")
    assert find_overlap([translated], [dialogue]).kinds == {"group": 1}


def test_case_33_one_context_with_two_responses_is_exact_whatever_the_spelling() -> None:
    report = find_overlap([example("a", "Well , it 's fine !")], [example("b", "Well, it's Fine.")])
    assert report.kinds == {"exact": 1}
    assert find_overlap([example("a", "😂😂")], [example("b", "😂😂"), example("c", "?!")]).overlaps[0].other == "b"


def test_near_duplicates_edited_and_contained() -> None:
    other = [example(f"o{i}", f"Something else number {i} that has nothing to do with it at all .") for i in range(50)]
    edited = example("edited", LONG.replace("spring", "summer"))
    longer = example(
        "longer", "Good morning !", LONG, "Yes , I remember it very well indeed , it was lovely and green ."
    )
    report = find_overlap([example("a", LONG)], [*other, edited])
    (found,) = report.overlaps
    assert (found.kind, found.other) == ("near", "edited") and 0.8 <= found.similarity < 1
    assert [o.other for o in find_overlap([example("a", LONG)], [*other, longer]).overlaps] == ["longer"]
    assert [o.one for o in find_overlap([*other, longer], [example("a", LONG)]).overlaps] == ["longer"]


def test_no_false_alarm() -> None:
    short = example("a", "Hello there.")
    assert find_overlap([short], [example("b", "Hello there.", LONG)]).overlaps == ()
    assert (
        find_overlap([example("a", LONG)], [example("b", LONG[:45], "but then it rained for a week", LONG[90:])]).kinds
        == {}
    )
    assert find_overlap([example("a", LONG, language="fr")], [example("b", LONG + " Ja")]).kinds == {}
    assert find_overlap([], [short]).share == 0.0
    with pytest.raises(ConfigError, match="threshold"):
        find_overlap([short], [short], threshold=0)


def test_the_report_does_not_depend_on_the_run() -> None:
    left = [example(f"a{i}", LONG.replace("garden", f"garden {i}")) for i in range(30)]
    right = [example(f"b{i}", LONG.replace("garden", f"garden {i}").replace("old", "new")) for i in range(30)]
    one, two = find_overlap(left, right), find_overlap(left, right)
    assert one == two and one.share == 1.0


def test_real_data_overlap(shared_data: Path) -> None:
    def xdial(name: str) -> list[Dialogue | Example]:
        return list(read(Source(reader="xdial", path=[shared_data / "xdial" / name], options={"languages": ["en"]})))

    zhao, grade = xdial("dailydialog-zhao.csv"), xdial("dailydialog-grade.csv")
    assert find_overlap(zhao, zhao).share == 1.0
    plus = list(
        read(
            Source(
                reader="dailydialogpp",
                path=[shared_data / "dailydialogpp" / "dev.json"],
                options={"responses": ["positive"]},
            )
        )
    )
    assert find_overlap(plus, xdial("persona-usr.csv")).share == 0.0
    assert 0.0 <= find_overlap(zhao, grade).share < 0.2


# --- splits ------------------------------------------------------------------------------------------------------------


def pair(name: str, context: str, response: str, group: str, language: str = "en") -> TrainingPair:
    return TrainingPair(name, language, (Turn(context),) if context else (), Turn(response), 1.0, "true_next", group)


def test_groups_stay_whole_across_languages() -> None:
    pairs = [
        pair(f"{g}-{lang}", f"ctx {g}", f"res {g}", f"g{g}", lang) for g in range(20) for lang in ("en", "es", "fr")
    ]
    split = split_pairs(pairs, 0.25, seed=1)
    assert {p.group for p in split.train} & {p.group for p in split.dev} == set()
    assert (len(split.train), len(split.dev)) == (45, 15)
    assert split == split_pairs(pairs, 0.25, seed=1)
    assert split.dev != split_pairs(pairs, 0.25, seed=2).dev


def test_case_19_blank_pairs_and_identical_sides_are_rejected_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    pairs = [
        pair("ok", "Hi.", "Hello.", "a"),
        pair("no-context", "", "Hello.", "b"),
        pair("blank", "Hi.", "  ", "a"),
        pair("blank-context", " ", "Hello.", "c"),
        pair("same", "Bye  now.", "bye now.", "d"),
    ]
    split = split_pairs(pairs, 0.5, seed=0)
    assert (split.blank, split.identical) == (2, 1)
    assert sorted(p.id for p in (*split.train, *split.dev)) == ["no-context", "ok"]
    assert "2 blank pairs and 1 with identical sides" in caplog.text


@pytest.mark.parametrize(("groups", "share"), [(["a"], 0.5), ([], 0.5), (["a", "b"], 0.0), (["a", "b"], 1.0)])
def test_splits_that_cannot_be(groups: list[str], share: float) -> None:
    with pytest.raises(ConfigError):
        split_groups(groups, share, seed=0)


def test_both_parts_always_have_a_group() -> None:
    assert [len(part) for part in split_groups("ab", 0.01, seed=0)] == [1, 1]
    assert [len(part) for part in split_groups("ab", 0.99, seed=0)] == [1, 1]


def test_real_data_dailydialogpp_and_zhao_share_contexts(shared_data: Path) -> None:
    path = shared_data / "xdial" / "dailydialog-zhao.csv"
    zhao = list(read(Source(reader="xdial", path=[path], options={"languages": ["en"]})))
    path, positive = shared_data / "dailydialogpp" / "test.json", {"responses": ["positive"]}
    plus = list(read(Source(reader="dailydialogpp", path=[path], options=positive)))
    report = find_overlap(zhao, plus)
    first = report.overlaps[0]
    assert (first.kind, first.one, first.other) == ("exact", "dailydialog-zhao-0", "test-295-positive-0")
    assert report.kinds["exact"] == 9  # one context with its nine responses
    assert all(0.8 <= found.similarity <= 1 for found in report.overlaps)
