"""The generic readers: the column map, the native form, and what people's files do to both."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mdialeval.config.corpus import Source
from mdialeval.errors import BackendError, ConfigError, DataError
from mdialeval.readers import read
from mdialeval.readers.labels import LabelError
from mdialeval.records import Dialogue, Example, Turn
from mdialeval.tables import write_records

Item = Dialogue | Example
Save = Callable[[str, str | bytes], Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def items(path: Path | list[Path], reader: str, limit: int | None = None, **options: Any) -> list[Any]:
    paths = path if isinstance(path, list) else [path]
    return list(read(Source(reader=reader, path=paths, options=options, limit=limit)))


DIALOGUES = [
    Dialogue("d1", "en", (Turn("Sure.\nSee you at six.", "A"), Turn('He said "None", NA\tand null.', None))),
    Dialogue("d2", "zh", (Turn("今天不行", "speaker1"), Turn("😂😂"), Turn("C:\\new\\table \\t", "B")), "d1"),
    Dialogue("d3", "ar", (Turn("  spaces stay  "), Turn("[1]"), Turn('{"text": "x"}'), Turn("<speaker1> Hi"))),
]
EXAMPLES = [
    Example("e1", "en", (Turn("Hi.", "A"), Turn("Hello.\r\n")), Turn("None"), {"fluency": 4.5}, "g1", "human"),
    Example("e1", "pt-PT", (), Turn('Não, "obrigado"; até já', "B"), {}, "", "", "e1"),
    Example("e2", "en", (Turn("Hi."), Turn("Bye.")), None, {"overall": 2.0, "a b": -1.0}, "g2", "bot"),
]


@pytest.mark.parametrize("records", [DIALOGUES, EXAMPLES], ids=["dialogues", "examples"])
@pytest.mark.parametrize("reader", ["jsonl", "csv", "tsv", "parquet"])
def test_written_records_read_back_the_same(tmp_path: Path, reader: str, records: list[Item]) -> None:
    path = tmp_path / f"records.{reader}"
    write_records(path, records, type(records[0]))
    assert items(path, reader) == records


TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=12)
TURNS = st.lists(st.builds(Turn, TEXT, st.none() | TEXT), min_size=1, max_size=3).map(tuple)


@pytest.mark.parametrize("reader", ["jsonl", "csv", "tsv", "parquet"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(turns=TURNS, response=st.none() | st.builds(Turn, TEXT, st.none() | TEXT), system=TEXT)
def test_any_text_survives_every_format(
    tmp_path: Path, reader: str, turns: tuple[Turn, ...], response: Turn | None, system: str
) -> None:
    path = tmp_path / f"any.{reader}"
    record = Example("x", "en", turns, response, {"a": 1.0}, "g", system)
    write_records(path, [record], Example)
    assert items(path, reader) == [record]


def test_column_map_ratings_and_turn_separator(save: Save) -> None:
    path = save("study.csv", "nr,ctx,res,sens,lang,who\n7,Hi. || How are you?,Fine.,4,pt_BR,botA\n8,,Yes.,,zho_Hans,\n")
    columns = {"id": "nr", "context": "ctx", "response": "res", "language": "lang", "system": "who"}
    found = items(path, "csv", columns=columns, ratings={"sensibleness": "sens"}, turn_separator="||")
    assert found[0] == Example(
        "7", "pt", (Turn("Hi."), Turn("How are you?")), Turn("Fine."), {"sensibleness": 4.0}, "study-c0", "botA"
    )
    assert (found[1].language, found[1].context, found[1].ratings) == ("zh", (), {})


def test_rows_with_one_context_form_one_group_and_ids_are_made(save: Save) -> None:
    path = save("a.tsv", "context\tresponse\nHi\tYes\nHi\tNo\nBye\tSo\n")
    assert [(e.id, e.group) for e in items(path, "tsv")] == [("a-1", "a-c0"), ("a-2", "a-c0"), ("a-3", "a-c1")]


def test_jsonl_dialogues_with_plain_and_chat_turns(save: Save) -> None:
    rows = [
        {"id": 1, "turns": ["Hi.", "<speaker2>Hello."]},
        {"id": 2, "language": "Chinese", "turns": [{"role": "user", "content": "你好"}]},
    ]
    path = save("d.jsonl", "\n".join(map(json.dumps, rows)))
    assert items(path, "jsonl", language="de") == [
        Dialogue("1", "de", (Turn("Hi."), Turn("Hello.", "speaker2"))),
        Dialogue("2", "zh", (Turn("你好", "user"),)),
    ]
    assert items(save("list.json", json.dumps(rows)), "jsonl", language="de") == items(path, "jsonl", language="de")


def test_whole_dialogues_are_rated_where_the_response_is_null(save: Save) -> None:
    rated = save("w.csv", 'turns,overall\n"Hi.\nHello.",3\n')
    (example,) = items(rated, "csv", ratings={"overall": "overall"})
    assert (example.context, example.response) == ((Turn("Hi."), Turn("Hello.")), None)
    same = items(rated, "csv", columns={"context": "turns", "response": None}, ratings={"overall": "overall"})
    assert same == [example]


def test_the_runs_language_is_the_default_and_an_option_wins(save: Save) -> None:
    path = save("a.csv", "context,response\nHi,Yes\n")
    source = Source(reader="csv", path=[path])
    assert next(iter(read(source, "fr"))).language == "fr"
    assert next(iter(read(Source(reader="csv", path=[path], options={"language": "de"}), "fr"))).language == "de"


# --- field cases -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["None", "NA", "NaN", "null", "n/a", "N/A", "nan", "-", "0"])
def test_case_28_words_that_look_missing_stay_text(save: Save, word: str) -> None:
    for reader, mark in (("csv", ","), ("tsv", "\t")):
        path = save(f"a.{reader}", f"context{mark}response\n{word}{mark}{word}\n")
        (example,) = items(path, reader)
        assert (example.context[0].text, example.response.text) == (word, word)


def test_case_28_an_empty_cell_that_is_needed_names_file_row_and_field(save: Save) -> None:
    path = save("a.csv", 'context,response\nHi,Yes\n"two\nlines",No\nBye,\n')
    with pytest.raises(DataError, match=r"a\.csv:5 \[response\].*empty") as caught:
        items(path, "csv")
    assert (caught.value.line, caught.value.field) == (5, "response")


def test_case_29_an_unbalanced_quote_in_tsv_swallows_no_row(save: Save) -> None:
    rows = ["Hi\tYes", "So\tNo", 'Go\t"Stop', "Oh\tFine", 'Er\t"Ok"']
    path = save("a.tsv", "context\tresponse\n" + "\n".join(rows) + "\n")
    assert [e.response.text for e in items(path, "tsv")] == ["Yes", "No", '"Stop', "Fine", '"Ok"']


def test_case_29_an_unbalanced_quote_in_csv_is_an_error_at_its_row(save: Save) -> None:
    with pytest.raises(DataError, match=r"a\.csv:3.*quote"):
        items(save("a.csv", 'context,response\nHi,Yes\nGo,"Stop\nOh,Fine\nEr,No\n'), "csv")


def test_case_29_ragged_rows_name_the_line(save: Save) -> None:
    with pytest.raises(DataError, match=r"a\.csv:3.*3 fields, the header has 2"):
        items(save("a.csv", "context,response\nHi,Yes\nHi, you,Yes\n"), "csv")
    with pytest.raises(DataError, match=r"a\.tsv:2.*1 fields, the header has 2"):
        items(save("a.tsv", "context\tresponse\nHi\n"), "tsv")


def test_case_29_semicolons_are_found(save: Save, caplog: pytest.LogCaptureFixture) -> None:
    (example,) = items(save("a.csv", "context;response\nHi, you;Yes, me\n"), "csv")
    assert example.response == Turn("Yes, me")
    assert "separated by ';'" in caplog.text


def test_case_29_tabs_in_a_csv_are_refused_with_a_hint(save: Save) -> None:
    with pytest.raises(DataError, match="reader tsv"):
        items(save("a.csv", "context\tresponse\nHi\tYes\n"), "csv")


def test_case_29_the_row_count_is_logged(save: Save, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    items(save("a.csv", "context,response\nHi,Yes\nHi,No\n"), "csv")
    assert "a.csv: 2 rows read" in caplog.text


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "context,response\nHi,Yes\n"),
        ("a.tsv", "context\tresponse\nHi\tYes\n"),
        ("a.jsonl", '{"context": ["Hi"], "response": "Yes"}\n'),
        ("a.json", '[{"context": ["Hi"], "response": "Yes"}]\n'),
    ],
)
def test_case_30_a_byte_order_mark_changes_nothing(save: Save, name: str, content: str) -> None:
    reader = "jsonl" if "json" in name else name[2:]
    (example,) = items(save(name, b"\xef\xbb\xbf" + content.replace("\n", "\r\n").encode()), reader)
    assert (example.context, example.response) == ((Turn("Hi"),), Turn("Yes"))


def test_case_7_a_line_end_inside_a_segment_stays_inside(save: Save) -> None:
    row = {"context": ["Sure.\nSee you at six."], "response": "Claro.\nNos vemos."}
    expected = (Turn("Sure.\nSee you at six."),), Turn("Claro.\nNos vemos.")
    (example,) = items(save("a.jsonl", json.dumps(row)), "jsonl")
    assert (example.context, example.response) == expected
    rows = items(save("a.csv", 'context,response\nHi,"Claro.\nNos vemos."\nBye,So\n'), "csv")
    assert [e.response.text for e in rows] == ["Claro.\nNos vemos.", "So"]


# --- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reader", ["jsonl", "csv", "tsv", "dailydialog", "dailydialogpp", "xdial", "maia", "holistic"])
def test_an_empty_file_is_an_error(save: Save, reader: str) -> None:
    options = {"language": "de"} if reader == "maia" else {}
    with pytest.raises(DataError, match="holds no dialogue"):
        items(save("de_client_x.txt", ""), reader, **options)


def test_a_header_without_rows_is_an_error(save: Save) -> None:
    with pytest.raises(DataError, match="holds no dialogue"):
        items(save("a.csv", "context,response\n"), "csv")


def test_one_row_is_enough(save: Save) -> None:
    assert len(items(save("a.jsonl", '{"id": "x", "turns": ["😂😂"]}'), "jsonl")) == 1


def test_five_thousand_words_and_a_cell_longer_than_the_csv_modules_limit(save: Save) -> None:
    long = "word " * 50_000
    (example,) = items(save("a.csv", f"context,response\nHi,{long}\n"), "csv")
    assert example.response.text == long


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"id": "x", "turns": []}', r":1 \[turns\].*zero turns"),
        ('{"id": "x", "turns": ["a", ""]}', r":1 \[turns\].*turn 2 is empty"),
        ('{"id": "x", "turns": ["a", 5]}', r"turn 2 is '5'"),
        ('{"id": "x", "turns": 5}', r"list of turns"),
        ('{"id": "x", "language": "xx-none", "turns": ["a"]}', r":1 \[language\].*unknown language"),
        ('{"id": "x", "turns": ["a"]}\n{"id": "x"', r":2: is not JSON"),
        ('{"id": "x", "turns": ["a"]}\n["a"]', r":2: |list"),
        ('{"id": "x", "context": ["a"]}', r"no column"),
        ('{"context": ["a"], "response": "b"}\n{"context": ["a"]}', r":2 \[response\].*key is missing"),
        ('{"context": [], "response": null}', r"nothing to rate"),
        ('{"context": ["a"], "response": ["b"]}', r"\[response\]"),
        ('{"context": ["a"], "response": "b", "ratings": 4}', r"\[ratings\].*object"),
        ('{"context": ["a"], "response": "b", "ratings": {"x": NaN}}', r"NaN is not JSON"),
        ('{"id": "x", "turns": ["\\ud83d"]}', r"surrogate"),
        ('{"text": "x"}', r"no column 'turns'"),
    ],
)
def test_bad_rows_name_file_row_and_field(save: Save, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        items(save("bad.jsonl", content), "jsonl")
    assert "bad.jsonl" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"context,response\nHi,Yes\nHi,caf\xe9\n", r"a\.csv:3.*not UTF-8"),
        ("context,response\nHi,Yes\n".encode("utf-16"), r"UTF-16"),
        (b"context,response\nHi,Y\0es\n", r"a\.csv:2.*NUL"),
        (b"context,response,response\nHi,Yes,No\n", r"twice"),
        (b"context,reply\nHi,Yes\n", r"'reply'.*option columns"),
        (b"context,response\rHi,Yes\r", r"a\.csv"),
    ],
)
def test_broken_csv(save: Save, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        items(save("a.csv", content), "csv")


def test_a_mapped_column_that_is_not_there_has_near_matches(save: Save) -> None:
    with pytest.raises(DataError, match=r"\[respnse\].*did you mean 'response'"):
        items(save("a.csv", "context,response\nHi,Yes\n"), "csv", columns={"response": "respnse"})


@pytest.mark.parametrize("ids", [("x", "x"), (1, "1")])
def test_duplicate_ids_name_both_rows(save: Save, ids: tuple[Any, Any]) -> None:
    rows = [{"id": ids[0], "turns": ["a"]}, {"id": "y", "turns": ["b"]}, {"id": ids[1], "turns": ["c"]}]
    with pytest.raises(DataError, match=r"item 3 has the id .* and so has item 1"):
        items(save("a.jsonl", "\n".join(map(json.dumps, rows))), "jsonl")


def test_duplicate_ids_over_two_files_name_both_files_and_languages_do_not_clash(save: Save) -> None:
    one = save("one.jsonl", '{"id": "x", "turns": ["a"]}')
    two = save("two.jsonl", '{"id": "x", "turns": ["b"]}')
    with pytest.raises(DataError, match=r"two\.jsonl: item 1 .* item 1 of .*one\.jsonl"):
        items([one, two], "jsonl")
    other = save("other.jsonl", '{"id": "x", "language": "fr", "turns": ["b"]}')
    assert [d.language for d in items([one, other], "jsonl")] == ["en", "fr"]


def test_limit_reads_only_the_first_items_over_files(save: Save) -> None:
    one = save("one.jsonl", '{"turns": ["a"]}\n{"turns": ["b"]}\n')
    two = save("two.jsonl", '{"turns": ["c"]}\nnot json')
    assert [d.id for d in items([one, two], "jsonl", limit=3)] == ["one-1", "one-2", "two-1"]


# --- labels ------------------------------------------------------------------------------------------------------------


def test_all_labels_outside_the_scale_are_listed_once(save: Save) -> None:
    cells = ["1", "5", "22", "good", "0", "4,5", "", "3", *["9"] * 30]
    path = save("a.csv", "context,response,s\n" + "".join(f'c{i},r,"{c}"\n' for i, c in enumerate(cells)))
    options: dict[str, Any] = {"ratings": {"sens": "s"}, "scale": {"sens": [1, 5]}}
    with pytest.raises(LabelError, match=r"34 labels .*sens \[1, 5\].*line 4 sens='22'.*and 14 more") as caught:
        items(path, "csv", **options)
    assert len(caught.value.labels) == 34
    assert caught.value.labels[1] == (5, "sens", "good")
    with pytest.raises(LabelError):  # also where only the first rows are wanted
        items(path, "csv", limit=4, **options)
    kept = items(path, "csv", outside="drop", **options)
    assert [e.ratings for e in kept[:8]] == [{"sens": 1.0}, {"sens": 5.0}, {}, {}, {}, {}, {}, {"sens": 3.0}]


def test_dropped_labels_are_said(save: Save, caplog: pytest.LogCaptureFixture) -> None:
    path = save("a.csv", "context,response,s\nHi,Yes,7\n")
    items(path, "csv", ratings={"s": "s"}, scale={"s": [1, 5]}, outside="drop")
    assert "1 labels outside" in caplog.text and "left unrated" in caplog.text


def test_parquet_not_a_number_is_missing_and_words_stay(tmp_path: Path) -> None:
    table = pa.table({"context": ["None", "NA"], "response": ["null", "a"], "s": [float("nan"), 2.0]})
    pq.write_table(table, tmp_path / "a.parquet")
    found = items(tmp_path / "a.parquet", "parquet", ratings={"s": "s"})
    assert [(e.context[0].text, dict(e.ratings)) for e in found] == [("None", {}), ("NA", {"s": 2.0})]
    (tmp_path / "b.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match="not a Parquet file"):
        items(tmp_path / "b.parquet", "parquet")


# --- options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"colums": {}}, "did you mean 'columns'"),
        ({"columns": {"reponse": "r"}}, "did you mean 'response'"),
        ({"kind": "dialog"}, "kind: Input should be 'dialogue' or 'example'"),
        ({"outside": "ignore"}, "outside: Input should be 'error' or 'drop'"),
        ({"scale": {"s": [5, 1]}}, "lowest and the highest"),
        ({"language": "ge"}, "unknown language"),
        ({"columns": 5}, "option columns: .*found 5"),
        ({"columns": {"id": 5}}, "option columns.id: .*found 5"),
        ({"ratings": ["x"]}, "option ratings"),
        ({"turn_separator": ""}, "turn_separator: is empty"),
    ],
)
def test_wrong_options_are_configuration_errors(save: Save, options: dict[str, Any], message: str) -> None:
    path = save("a.jsonl", '{"turns": ["a"]}')
    with pytest.raises(ConfigError, match=message):
        items(path, "jsonl", **options)


def test_unknown_reader_has_near_matches(save: Save) -> None:
    with pytest.raises(ConfigError, match="did you mean 'jsonl'"):
        items(save("a.jsonl", ""), "jsonll")


# --- Hugging Face ------------------------------------------------------------------------------------------------------


def test_huggingface_reads_a_saved_folder(tmp_path: Path) -> None:
    import datasets

    rows = {"context": [["Hi", "You?"], ["None"]], "response": ["Me.", "NA"], "s": [1.0, None]}
    whole = datasets.DatasetDict({"train": datasets.Dataset.from_dict(rows), "test": datasets.Dataset.from_dict(rows)})
    whole.save_to_disk(str(tmp_path / "set"))
    with pytest.raises(DataError, match=r"name a split: known: test, train"):
        items(tmp_path / "set", "huggingface")
    found = items(tmp_path / "set", "huggingface", split="test", ratings={"s": "s"})
    assert [(e.response.text, dict(e.ratings)) for e in found] == [("Me.", {"s": 1.0}), ("NA", {})]


def test_huggingface_says_which_reader_a_file_needs(save: Save, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="use the reader csv"):
        items(save("a.csv", "context,response\n"), "huggingface")
    with pytest.raises(DataError, match="save_to_disk"):
        items(tmp_path, "huggingface")


def test_a_hub_name_fails_at_once_where_the_hub_is_off() -> None:
    source = Source(reader="huggingface", path="nobody/no-such-data-set")  # type: ignore[arg-type]
    assert source.path == [] and source.title == "nobody/no-such-data-set"
    with pytest.raises(BackendError, match="not in the local cache, and the hub is switched off"):
        list(read(source))


def test_a_source_without_files_is_refused() -> None:
    with pytest.raises(ValueError, match="name at least one file"):
        Source(reader="jsonl", path=[])


def test_an_empty_response_text_is_missing_and_null_is_not(save: Save) -> None:
    with pytest.raises(DataError, match=r":1 \[response\].*empty"):
        items(save("a.jsonl", '{"context": ["a"], "response": ""}'), "jsonl")
    with pytest.raises(DataError, match=r":1 \[reply\].*empty"):
        items(save("a.jsonl", '{"context": ["a"], "reply": null}'), "jsonl", columns={"response": "reply"})


def test_rows_of_one_json_lines_file_may_have_different_keys(save: Save) -> None:
    path = save(
        "a.jsonl", '{"id": "x", "turns": ["a"]}\n{"id": "y", "language": "fr", "source_id": "x", "turns": ["b"]}'
    )
    assert [(d.language, d.source_id) for d in items(path, "jsonl")] == [("en", None), ("fr", "x")]


class Outside:
    """A reader that lives outside the package and returns a plain iterator."""

    def __init__(self, *, word: str = "hi", language: str = "en") -> None:
        self.word, self.language = word, language

    def read(self, paths: Sequence[Path]) -> Iterator[Dialogue]:
        return iter(
            [Dialogue(f"{path.stem}-{i}", self.language, (Turn(self.word),)) for path in paths for i in range(3)]
        )


def test_a_reader_outside_the_package_is_named_by_module_and_class(
    save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys
    import types

    module = types.ModuleType("their_readers")
    module.Outside = Outside  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "their_readers", module)
    source = Source(reader="their_readers:Outside", path=[save("a.x", "")], options={"word": "yo"}, limit=2)
    assert list(read(source, "pt")) == [Dialogue(f"a-{i}", "pt", (Turn("yo"),)) for i in range(2)]
    with pytest.raises(ConfigError, match="did you mean 'word'"):
        list(read(Source(reader="their_readers:Outside", path=[save("a.x", "")], options={"wrd": "yo"})))
