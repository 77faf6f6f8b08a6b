"""The corpus readers on small hand-made files and on the published ones."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mdialeval.config.corpus import Source
from mdialeval.errors import ConfigError, DataError
from mdialeval.readers import read, reader_of
from mdialeval.readers.protocol import READERS
from mdialeval.readers.releases import RELEASES
from mdialeval.records import Dialogue, Example, Turn


def items(reader: str, *paths: Path, **options: Any) -> list[Any]:
    return list(read(Source(reader=reader, path=list(paths), options=options)))


@pytest.mark.parametrize("name", READERS)
def test_every_reader_is_made_without_options_and_declares_sound_scales(name: str) -> None:
    reader = reader_of(Source(reader=name, path=[Path("x")]))
    assert all(low < high for low, high in getattr(reader, "scales", {}).values())


@pytest.mark.parametrize("name", READERS)
def test_a_missing_file_is_a_data_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="absent"):
        items(name, tmp_path / "absent.txt")


# --- DailyDialog -------------------------------------------------------------------------------------------------------


def test_dailydialog_lines(tmp_path: Path) -> None:
    path = tmp_path / "dialogues.txt"
    path.write_text("Hi . __eou__ Hello . __eou__\n\nBye . __eou__ __eou__ Bye ! __eou__\n", encoding="utf-8")
    assert items("dailydialog", path) == [
        Dialogue("dialogues-1", "en", (Turn("Hi ."), Turn("Hello ."))),
        Dialogue("dialogues-2", "en", (Turn("Bye ."), Turn("Bye !"))),
    ]
    path.write_text("Hi . __eou__\n __eou__ \n", encoding="utf-8")
    with pytest.raises(DataError, match=r":2: .*zero turns"):
        items("dailydialog", path)


def test_dailydialog_parallel_lines_are_joined_or_kept(tmp_path: Path) -> None:
    contexts, responses = tmp_path / "c.txt", tmp_path / "r.txt"
    contexts.write_text("a\nb\nx\n", encoding="utf-8")
    responses.write_text("b\nc\ny\n", encoding="utf-8")
    joined = items("dailydialog", contexts, responses, form="parallel")
    assert [[turn.text for turn in d.turns] for d in joined] == [["a", "b", "c"], ["x", "y"]]
    kept = items("dailydialog", contexts, responses, form="parallel", kind="example")
    assert [(e.context[0].text, e.response.text, e.group) for e in kept] == [
        ("a", "b", "c-1"),
        ("b", "c", "c-1"),
        ("x", "y", "c-2"),
    ]
    responses.write_text("b\nc\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"r\.txt:2: ends after 2 lines"):
        items("dailydialog", contexts, responses, form="parallel")
    with pytest.raises(DataError, match="a file of contexts and a file of responses"):
        items("dailydialog", contexts, form="parallel")
    with pytest.raises(ConfigError):
        items("dailydialog", contexts, kind="example")


def test_dailydialog_real_text(shared_data: Path) -> None:
    folder = shared_data / "dailydialog-text"
    pair = folder / "valid_contexts.txt", folder / "valid_responses.txt"
    examples = items("dailydialog", *pair, form="parallel", kind="example")
    dialogues = items("dailydialog", *pair, form="parallel")
    assert len(examples) == 13105
    assert sum(len(d.turns) for d in dialogues) == 13105 + len(dialogues)
    assert len(dialogues) == len({e.group for e in examples})


# --- DailyDialog++ -----------------------------------------------------------------------------------------------------


def _plus(path: Path, **changes: Any) -> Path:
    row = {
        "id": 3,
        "context": ["Hi.", "Hello."],
        "positive_responses": ["Fine.", "Good."],
        "adversarial_negative_responses": ["Repeated", "The hello is good."],
        "random_negative_responses": ["fine. ", "The bus is late."],
    }
    path.write_text(json.dumps({**row, **changes}), encoding="utf-8")
    return path


def test_dailydialogpp_drops_placeholders_and_false_negatives_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = items("dailydialogpp", _plus(tmp_path / "toy.json"))
    assert [(e.id, e.system, e.ratings["sensibleness"]) for e in found] == [
        ("toy-3-positive-0", "positive", 1.0),
        ("toy-3-positive-1", "positive", 1.0),
        ("toy-3-adversarial-1", "adversarial", 0.0),
        ("toy-3-random-1", "random", 0.0),
    ]
    assert {e.group for e in found} == {"toy-c0"}
    assert "dropped 1 placeholder, 1 random equal to a positive" in caplog.text


def test_dailydialogpp_options(tmp_path: Path) -> None:
    path = _plus(tmp_path / "toy.json")
    assert {e.system for e in items("dailydialogpp", path, responses=["random"])} == {"random"}
    dialogues = items("dailydialogpp", path, kind="dialogue")
    assert [[t.text for t in d.turns] for d in dialogues] == [["Hi.", "Hello.", "Fine."], ["Hi.", "Hello.", "Good."]]
    with pytest.raises(ConfigError, match="did you mean 'adversarial'"):
        items("dailydialogpp", path, responses=["adverserial"])
    with pytest.raises(DataError, match=r"toy\.json:1 \[context\]"):
        items("dailydialogpp", _plus(tmp_path / "toy.json", context="Hi."))


@pytest.mark.parametrize(("part", "contexts", "placeholders", "equal"), [("dev", 1028, 0, 6), ("test", 1142, 25, 5)])
def test_dailydialogpp_real(shared_data: Path, part: str, contexts: int, placeholders: int, equal: int) -> None:
    found = items("dailydialogpp", shared_data / "dailydialogpp" / f"{part}.json")
    kinds = Counter(e.system for e in found)
    assert kinds["positive"] == 5 * contexts
    assert kinds["adversarial"] == 5 * contexts - placeholders
    assert kinds["random"] <= 5 * contexts - equal
    assert kinds["random"] >= 5 * contexts - 2 * equal
    assert len({e.group for e in found}) == contexts - (part == "dev")  # contexts 228 and 508 of dev are the same


# --- xDial-Eval --------------------------------------------------------------------------------------------------------


def test_xdial(tmp_path: Path) -> None:
    path = tmp_path / "toy.csv"
    header = "english_ctx,english_res,chinese_ctx,chinese_res,ratings\n"
    path.write_text(
        header + '"Hi.\nYou?",Me.,"嗨。\n你？",我。,4.5\n"Hi.\nYou?",No.,"嗨!\n你？",不。,2\n', encoding="utf-8"
    )
    found = items("xdial", path, dimension="relevance")
    assert [(e.id, e.language, e.group, e.source_id, e.ratings) for e in found] == [
        ("toy-0", "en", "toy-c0", None, {"relevance": 4.5}),
        ("toy-0", "zh", "toy-c0", "toy-0", {"relevance": 4.5}),
        ("toy-1", "en", "toy-c0", None, {"relevance": 2.0}),
        ("toy-1", "zh", "toy-c0", "toy-1", {"relevance": 2.0}),
    ]
    assert found[1].context == (Turn("嗨。"), Turn("你？"))
    only = items("xdial", path, languages=["zho_Hans"])
    assert {(e.language, e.group) for e in only} == {("zh", "toy-c0")}  # grouped by English though it is not read
    with pytest.raises(DataError, match=r"no columns for ko; the file has en, zh"):
        items("xdial", path, languages=["ko"])
    with pytest.raises(DataError, match=r"2 labels|1 labels"):
        items("xdial", path, scale=[3, 5])


@pytest.mark.parametrize(("name", "rows", "groups"), [("dailydialog-zhao", 900, 100), ("persona-usr", 300, 60)])
def test_xdial_real(shared_data: Path, name: str, rows: int, groups: int) -> None:
    found = items("xdial", shared_data / "xdial" / f"{name}.csv", languages=["en", "zh", "es", "de", "fr", "ja"])
    assert Counter(e.language for e in found) == dict.fromkeys(["en", "zh", "es", "de", "fr", "ja"], rows)
    assert len({e.group for e in found}) == groups
    turns = {(e.id, len(e.context)) for e in found}
    assert len(turns) == rows  # every language has as many turns as English


# --- MAIA --------------------------------------------------------------------------------------------------------------

MAIA = "ctx_src,ctx_tgt,res_src,res_tgt,correctness,templated,engagement,understanding,sensibleness,politeness,iq\n"


def test_maia(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "pt_br_client_09_turn.csv"
    rows = (
        "<speaker2>Oi,<speaker2>Hi,<speaker2>Olá,<speaker2>Hello,2,0,1,1,22,1,5\n"
        "<speaker1>Olá,<speaker1>Hello,<speaker2>Tudo bem?,<speaker2>All well?,2,0,1,0,,1,5\n"
        "<speaker2>Outra,<speaker2>Other,<speaker2>Sim,<speaker2>Yes,2,0,1,1,1,1,5\n"
    )
    path.write_text(MAIA + rows, encoding="utf-8")
    found = items("maia", path)
    assert [e.language for e in found] == ["pt"] * 3
    assert found[1].context == (Turn("Olá", "speaker1"),) and found[1].response == Turn("Tudo bem?", "speaker2")
    assert [dict(e.ratings) for e in found] == [
        {"understandability": 1.0},
        {"understandability": 0.0},
        {"understandability": 1.0, "sensibleness": 1.0},
    ]
    assert [e.group[-2:] for e in found] == ["c1", "c1", "c2"]
    assert "line 2 sensibleness='22'" in caplog.text
    target = items("maia", path, side="target", dimensions=["iq"])
    assert (target[0].language, target[0].response, target[0].ratings) == (
        "en",
        Turn("Hello", "speaker2"),
        {"interaction_quality": 5.0},
    )
    assert [e.group for e in target] == [e.group for e in found]
    other = path.rename(tmp_path / "turns.csv")
    with pytest.raises(DataError, match="set the option language"):
        items("maia", other)
    assert items("maia", other, language="pt-PT")[0].language == "pt-PT"


def test_maia_real(shared_data: Path) -> None:
    found = items("maia", shared_data / "maia" / "de_client_02_turn.csv")
    assert len(found) == 1309 and {e.language for e in found} == {"de"}
    # 14 blank and one label of 3
    votes = Counter(e.ratings.get("understandability") for e in found)
    assert votes == {1.0: 1278, 0.0: 16, None: 15}
    assert {e.language for e in items("maia", shared_data / "maia" / "pt_pt_client_03_turn.csv")} == {"pt-PT"}


# --- DialEvalML --------------------------------------------------------------------------------------------------------


def test_dialevalml_scores(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    header = "ctx,model_response," + ",".join(f"{r}{n}" for r in ("F", "A", "EO") for n in range(1, 5)) + "\n"
    row = "<speaker1>Hi.</s><s><speaker2>You?,<speaker1>Me.,1,1,0,1,0,0,0,1,1,2,3,4\n"
    path.write_text(header + row, encoding="utf-8")
    (example,) = items("dialevalml", path)
    assert example.context == (Turn("Hi.", "speaker1"), Turn("You?", "speaker2"))
    assert example.response == Turn("Me.", "speaker1")
    assert example.ratings == {"understandability": 0.75, "sensibleness": 0.25, "overall": 2.5}


def test_dialevalml_real_post_edits(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "dialevalml" / "DD_test_post_edits.csv"
    found = items("dialevalml", path, languages=["en", "pt", "zh"])
    assert Counter(e.language for e in found) == {"en": 250, "pt": 250, "zh": 250}
    assert len({e.group for e in found}) == 50 and {e.system for e in found} == {f"slot{i}" for i in range(5)}
    assert found[0].response == Turn("I ' m afraid I can ' t .")
    assert found[1].source_id == found[0].id == found[1].id
    short = tmp_path / "short.csv"
    short.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:200]), encoding="utf-8")
    with pytest.raises(DataError, match="300 rows"):
        items("dialevalml", short)


# --- holistic ----------------------------------------------------------------------------------------------------------


def test_holistic(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text('7,"Well, yes.",5,4,5,5,5,5,4,4,5,4\n', encoding="utf-8")
    assert items("holistic", path) == [Example("f-7", "en", (), Turn("Well, yes."), {"fluency": 4.6}, "f-c0")]
    path.write_text("7,Hi.,Yes.,5,4,5,5,5,5,4,4,5,6\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"coherence \[1, 5\]: line 1 coherence='6'"):
        items("holistic", path)
    path.write_text("7,Hi.,5,4\n", encoding="utf-8")
    with pytest.raises(DataError, match="4 fields"):
        items("holistic", path)


def test_holistic_real(shared_data: Path) -> None:
    for part, dimension in (("context", "coherence"), ("fluency", "fluency")):
        found = items("holistic", shared_data / "holistic" / f"{part}_data_release.csv")
        assert len(found) == 200
        assert all(set(e.ratings) == {dimension} and 1 <= e.ratings[dimension] <= 5 for e in found)


# --- known releases ----------------------------------------------------------------------------------------------------


def test_another_file_under_a_known_name_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "dailydialog-zhao.csv"
    path.write_text("english_ctx,english_res,ratings\nHi.,Me.,3\n", encoding="utf-8")
    items("xdial", path)
    assert "not the known release of that name (1 rows here, 900 there)" in caplog.text


def test_the_known_release_is_recognised_and_another_count_is_an_error(
    shared_data: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shared_data / "maia" / "pt_pt_client_03_turn.csv"
    items("maia", path)
    assert "not the known release" not in caplog.text
    import dataclasses

    monkeypatch.setitem(RELEASES, path.name, dataclasses.replace(RELEASES[path.name], rows=360))
    with pytest.raises(DataError, match="361 rows were read, but this release has 360"):
        items("maia", path)
