"""PersonaChat, XPersona, Topical-Chat, DSTC11, FED, USR, GRADE, ConTurE and the catalogue, on hand-made files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mdialeval.config.corpus import Source
from mdialeval.errors import ConfigError, DataError
from mdialeval.languages import canonical
from mdialeval.readers import read, reader_of
from mdialeval.readers.catalogue import DATASETS, describe
from mdialeval.readers.protocol import READERS
from mdialeval.records import Dialogue, Turn


def items(reader: str, path: Path, **options: Any) -> list[Any]:
    return list(read(Source(reader=reader, path=[path], options=options)))


def save(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), encoding="utf-8")
    return path


# --- dialogues ---------------------------------------------------------------------------------------------------------


def test_personachat(tmp_path: Path) -> None:
    text = (
        "1 your persona: i have a cat.\n2 partner's persona: i run.\n3 hi !\thello .\t\tbye .|hello .\n"
        "4 do you run ?\tyes : daily .\n1 your persona: i sing.\n2 __SILENCE__\tgood day .\n"
    )
    assert items("personachat", save(tmp_path / "train.txt", text)) == [
        Dialogue(
            "train-1",
            "en",
            (
                Turn("hi !", "speaker1"),
                Turn("hello .", "speaker2"),
                Turn("do you run ?", "speaker1"),
                Turn("yes : daily .", "speaker2"),
            ),
        ),
        Dialogue("train-2", "en", (Turn("good day .", "speaker2"),)),
    ]
    with pytest.raises(DataError, match=r"train\.txt:1: .*begins with its number"):
        items("personachat", save(tmp_path / "train.txt", "hi !\thello .\n"))
    with pytest.raises(DataError, match=r"train\.txt:1: .*zero turns"):
        items("personachat", save(tmp_path / "train.txt", "1 your persona: i sing.\n1 hi\tho\n"))


def test_xpersona(tmp_path: Path) -> None:
    rows = [{"persona": ["猫"], "dialogue": [["やあ", "はい"], ["元気?", ""]]}]
    found = items("xpersona", save(tmp_path / "Jp_persona_train_corrected.json", rows))
    turns = (Turn("やあ", "speaker1"), Turn("はい", "speaker2"), Turn("元気?", "speaker1"))
    assert found == [Dialogue("Jp_persona_train_corrected-1", "ja", turns)]
    with pytest.raises(DataError, match=r"\[dialogue\].*pairs"):
        items("xpersona", save(tmp_path / "Zh_x.json", [{"dialogue": ["a"]}]))
    with pytest.raises(DataError, match="set the option language"):
        items("xpersona", save(tmp_path / "persona.json", rows))
    assert items("xpersona", tmp_path / "persona.json", language="ja")[0].language == "ja"


def test_topicalchat(tmp_path: Path) -> None:
    message = {"message": " Hi. ", "agent": "agent_1", "sentiment": "Happy"}
    found = items("topicalchat", save(tmp_path / "train.json", {"t_1": {"content": [message, message]}}))
    assert found == [Dialogue("t_1", "en", (Turn("Hi.", "agent_1"), Turn("Hi.", "agent_1")))]
    with pytest.raises(DataError, match=r":1 \[content\].*'t_1' has no messages"):
        items("topicalchat", save(tmp_path / "train.json", {"t_1": {"content": []}}))
    with pytest.raises(DataError, match="one JSON object"):
        items("topicalchat", save(tmp_path / "train.json", [message]))


DSTC = (
    'UID,SID,SEG,TRANSLATION,BACKTRANSLATION\nDD-000001-0001,A,Hi.,嗨。,Hey.\nDD-000001-0002,B,"So, yes.",是。,Yes.\n'
)


def test_dstc11_csv(tmp_path: Path) -> None:
    path = save(
        tmp_path / "train" / "en_zh" / "DD_main.csv",
        DSTC + "DD-000002-0001,A,Bye.,,Bye.\nDD-000002-0002,B,No.,不。,No.\n",
    )
    source = items("dstc11", path)
    assert source[0] == Dialogue("DD-000001", "en", (Turn("Hi.", "A"), Turn("So, yes.", "B")))
    translated = items("dstc11", path, side="translation")
    assert translated[0] == Dialogue("DD-000001", "zh", (Turn("嗨。", "A"), Turn("是。", "B")), "DD-000001")
    assert translated[1].turns == (Turn("不。", "B"),)
    elsewhere = save(tmp_path / "main.csv", DSTC)
    with pytest.raises(DataError, match="set the option language"):
        items("dstc11", elsewhere)
    assert items("dstc11", elsewhere, side="translation", language="zh")[0].language == "zh"
    with pytest.raises(DataError, match=r"\[UID\].*corpus-dialogue-turn"):
        items("dstc11", save(tmp_path / "en_zh.csv", "UID,SID,SEG\nx,A,Hi.\n"))


def test_dstc11_json(tmp_path: Path) -> None:
    row = {
        "context": "Hi.\nYou?",
        "response": "Me.",
        "context_zh": "嗨。\n你？",
        "response_zh": "我。",
        "context_pa": "Hey.\nYou?",
        "response_pa": "I.",
        "annotations": {"Maintains Context": [1, 2], "overall": 3},
    }
    path = save(tmp_path / "set_eval_zh_es_pa.json", [row])
    found = items("dstc11", path)
    assert [(e.language, e.context[1].text, e.source_id) for e in found] == [
        ("en", "You?", None),
        ("zh", "你？", "set_eval_zh_es_pa-0"),
    ]
    assert found[1].ratings == {"maintains_context": 1.5, "overall": 3.0}
    with pytest.raises(DataError, match=r"overall \[1, 2\]: line 1 overall='3'"):
        items("dstc11", path, scale={"overall": [1, 2]})
    with pytest.raises(DataError, match="no texts in es"):
        items("dstc11", path, languages=["es"])


# --- rated responses ---------------------------------------------------------------------------------------------------


def test_fed_turns_and_dialogues(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    context = "User: Hi!\nSystem: Note: hello.\nUser: So?"
    rows = [
        {
            "context": context,
            "response": "System: Yes.",
            "system": "Meena",
            "annotations": {
                "Semantically appropriate": [2, 1],
                "Understandable": [1, 0],
                "Correct": ["n/a", 2],
                "Fluent": ["n/a"],
            },
        },
        {"context": context + "\nSystem: Yes.", "system": "Meena", "annotations": {"Overall": [4, 3]}},
    ]
    path = save(tmp_path / "fed_data.json", rows)
    caplog.set_level("INFO")
    (turn,) = items("fed", path)
    assert turn.context == (Turn("Hi!", "User"), Turn("Note: hello.", "System"), Turn("So?", "User"))
    assert (turn.response, turn.system) == (Turn("Yes.", "System"), "Meena")
    assert turn.ratings == {"semantically_appropriate": 1.5, "understandability": 0.5, "correct": 2.0}
    assert "2 votes are words" in caplog.text
    (dialogue,) = items("fed", path, level="dialogue")
    assert (dialogue.response, dialogue.ratings, len(dialogue.context)) == (None, {"overall": 3.5}, 4)
    assert dialogue.group == turn.group
    rows[0]["annotations"] = {"Understandable": [2]}
    with pytest.raises(DataError, match=r"understandability \[0, 1\]"):
        items("fed", save(path, rows))


def test_usr(tmp_path: Path) -> None:
    response = {
        "response": "Fine.\n",
        "model": "Seq2Seq",
        "Understandable": [1, 1, 0],
        "Natural": [3, 2, 1],
        "Maintains Context": [3, 3, 3],
        "Engaging": [1, 1, 1],
        "Uses Knowledge": [0, 0, 1],
        "Overall": [4, 4, 5],
    }
    rows = [
        {"context": "Hi.\nYou?\n", "fact": "f", "responses": [response, {**response, "model": "Original Ground Truth"}]}
    ]
    found = items("usr", save(tmp_path / "pc_usr_data.json", rows))
    assert [(e.id, e.system, e.group) for e in found] == [
        ("pc_usr_data-0-0", "Seq2Seq", "pc_usr_data-c0"),
        ("pc_usr_data-0-1", "Original Ground Truth", "pc_usr_data-c0"),
    ]
    assert found[0].context == (Turn("Hi."), Turn("You?")) and found[0].response == Turn("Fine.")
    assert found[0].ratings == pytest.approx(
        {
            "understandability": 2 / 3,
            "natural": 2.0,
            "maintains_context": 3.0,
            "engaging": 1.0,
            "uses_knowledge": 1 / 3,
            "overall": 13 / 3,
        }
    )


def test_grade(tmp_path: Path) -> None:
    for model, score in (("ranker", "4.5\n2\n"), ("generator", "1\n3.25\n")):
        texts = tmp_path / "eval_data" / "convai2" / model
        save(texts / "human_ctx.txt", "hi .|||hello .\nbye .|||so ?\n")
        save(texts / "human_hyp.txt", "fine .\nno .\n")
        save(tmp_path / "human_score" / "convai2" / model / "human_score.txt", score)
    found = items("grade", tmp_path)
    assert [(e.id, e.system, e.group, e.ratings["coherence"]) for e in found] == [
        ("convai2-generator-1", "generator", "convai2-c0", 1.0),
        ("convai2-generator-2", "generator", "convai2-c1", 3.25),
        ("convai2-ranker-1", "ranker", "convai2-c0", 4.5),
        ("convai2-ranker-2", "ranker", "convai2-c1", 2.0),
    ]
    assert found[0].context == (Turn("hi ."), Turn("hello ."))
    only = items("grade", tmp_path / "eval_data" / "convai2" / "ranker")
    assert [e.id for e in only] == ["convai2-ranker-1", "convai2-ranker-2"]
    save(tmp_path / "eval_data" / "convai2" / "ranker" / "human_hyp.txt", "fine .\n")
    with pytest.raises(DataError, match=r"human_ctx.txt 2, human_hyp.txt 1, human_score.txt 2"):
        items("grade", tmp_path)


def test_conture(tmp_path: Path) -> None:
    turns = [
        {"user": "User: hi", "chatbot": "Chatbot: hello", "overall impression": 2},
        {"user": "User: so?", "chatbot": "Chatbot:", "overall impression": 0},
        {"user": "User: well", "chatbot": "Chatbot: yes", "overall impression": 1},
    ]
    found = items("conture", save(tmp_path / "data.json", [{"dialog_id": 7, "turns": turns}]))
    assert [(e.id, e.group, len(e.context), e.response.text, e.ratings["overall"]) for e in found] == [
        ("data-7-0", "data-7", 1, "hello", 2.0),
        ("data-7-1", "data-7", 3, "", 0.0),
        ("data-7-2", "data-7", 4, "yes", 1.0),
    ]
    assert found[0].context == (Turn("hi", "User"),)
    with pytest.raises(DataError, match=r"overall \[0, 2\]"):
        items("conture", save(tmp_path / "data.json", [{"turns": [{**turns[0], "overall impression": 3}]}]))


# --- the catalogue -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DATASETS)
def test_the_catalogue_agrees_with_the_readers(name: str) -> None:
    known = describe(name)
    assert known.reader in READERS
    reader = reader_of(Source(reader=known.reader, path=[Path("x")], options=dict(known.options)))
    assert [canonical(code) for code in known.languages] == list(known.languages)
    assert getattr(reader, "licence", known.licence) == known.licence
    declared = getattr(reader, "scales", {})
    assert {dimension: declared.get(dimension) for dimension in known.scales} == dict(
        known.scales
    ) or name == "xdial-persona-usr"


def test_every_corpus_reader_is_in_the_catalogue() -> None:
    generic = {"jsonl", "csv", "tsv", "parquet", "huggingface"}
    assert {dataset.reader for dataset in DATASETS.values()} == set(READERS) - generic


def test_an_unknown_data_set_has_near_matches() -> None:
    with pytest.raises(ConfigError, match="did you mean 'dailydialog'"):
        describe("dailydialgo")


MALFORMED: list[Any] = [
    {},
    [1],
    [[]],
    "x",
    None,
    [{"context": 5}],
    [{"context": "a", "response": 5, "annotations": [1]}],
    [{"context": "a", "response": "b", "annotations": {"x": "y"}}],
    [{"context": "a", "responses": [5]}],
    [{"context": ["a"], "positive_responses": [1]}],
    [{"turns": [5]}],
    [{"dialogue": [[]]}],
    {"t": {"content": [5]}},
    [dict.fromkeys(["context", "response", "responses", "turns", "dialogue", "content", "annotations"])],
]


@pytest.mark.parametrize("content", MALFORMED, ids=str)
@pytest.mark.parametrize(
    "reader", ["jsonl", "dailydialogpp", "xpersona", "topicalchat", "dstc11", "fed", "usr", "conture"]
)
def test_malformed_json_is_never_a_traceback(tmp_path: Path, reader: str, content: Any) -> None:
    options = {"language": "ja"} if reader in ("xpersona", "dstc11") else {}
    path = save(tmp_path / "bad.json", json.dumps(content))
    try:
        found = items(reader, path, **options)
    except DataError as error:
        assert "bad.json" in str(error)
    else:  # a few of them are what one reader takes for a row
        assert len(found) == 1
