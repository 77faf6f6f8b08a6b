"""The contract of every estimator, and what is particular to the small ones."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mdialeval.errors import ConfigError, DataError
from mdialeval.graphs.dummy import DummyParser
from mdialeval.rank.graph import BackTranslationGraph
from mdialeval.rank.lengths import pieces
from mdialeval.rank.protocol import ESTIMATORS, QualityEstimator, create_estimator, gaps, truncated
from mdialeval.records import Graph, Translation
from mdialeval.registry import assets

Row = Callable[..., Translation]


@pytest.fixture
def mixed(row: Row) -> list[Translation]:
    """Short and long, several scripts, right to left, emoji, and one without a hypothesis."""
    texts = [
        ("Where is the station?", "Wo ist der Bahnhof?", "de"),
        ("Where is the station?", "车站在哪里?", "zh"),
        ("See you at six.\nBye!", "أراك في السادسة.\nوداعا!", "ar"),
        ("😂😂", "😂😂", "de"),
        ("42", "42", "ja"),
        ("I would like some tea, please, and then a very long walk.", "お茶をください。", "ja"),
        ("nothing came back", "", "pt"),
        (",,,", ",", "pt"),
        ("See you \ud83d later", "Bis \u200b später", "de"),
    ]
    return [row(s, h, code, item=f"d{i}", back=s if h else None) for i, (s, h, code) in enumerate(texts)]


@pytest.fixture(scope="module")
def made() -> dict[str, QualityEstimator]:
    return {}


@pytest.fixture(params=sorted(ESTIMATORS))
def estimator(request: pytest.FixtureRequest, made: dict[str, Any], tmp_path: Path, mixed: list[Translation]) -> Any:
    name = request.param
    if name == "given":
        path = tmp_path / "scores.jsonl"
        path.write_text(
            "\n".join(json.dumps({"id": r.id, "score": i / 10}) for i, r in enumerate(mixed) if r.hypothesis)
        )
        return create_estimator("given", {"path": str(path)})
    if name not in made:
        options = {"model": str(request.getfixturevalue("regression"))} if name == "comet" else {}
        made[name] = create_estimator(name, options, device="cpu", batch_size=4, on_long="truncate")
    return made[name]


def test_contract(estimator: QualityEstimator, mixed: list[Translation]) -> None:
    assert estimator.identity
    assert isinstance(estimator.higher_is_better, bool)
    assert estimator.estimate([]) == []
    scores = estimator.estimate(mixed)
    assert len(scores) == len(mixed)
    wordless = ("😂😂", ",,,") if isinstance(estimator, BackTranslationGraph) else ()  # these have no graph
    assert [math.isnan(score) for score in scores] == [not r.hypothesis or r.source in wordless for r in mixed]
    assert [bool(gap) for gap in gaps(estimator, mixed, scores)] == [math.isnan(score) for score in scores]
    assert estimator.estimate(list(reversed(mixed))) == pytest.approx(list(reversed(scores)), abs=1e-5, nan_ok=True)
    assert [estimator.estimate([row])[0] for row in mixed] == pytest.approx(scores, abs=1e-5, nan_ok=True)
    assert len(truncated(estimator, mixed)) == len(mixed)


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_assets_are_listed_without_options(name: str) -> None:
    for asset in assets("estimator", ESTIMATORS, name):
        assert asset.present or asset.fix


def test_unknown_estimators_and_options() -> None:
    with pytest.raises(ConfigError, match="did you mean 'embedded'"):
        create_estimator("embeded")
    with pytest.raises(ConfigError, match="no option 'modle'"):
        create_estimator("comet", {"modle": "x"})


def test_given_reads_every_format_and_joins_by_id_and_language(tmp_path: Path, row: Row) -> None:
    rows = [row("a", "b", "de", item="x"), row("a", "c", "pt", item="x")]
    table = "id,language,score\nx#0,de,0.5\nx#0,pt_BR,-2\n"
    (tmp_path / "s.csv").write_text(table, encoding="utf-8-sig")
    (tmp_path / "s.tsv").write_text(table.replace(",", "\t"))
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(
        pa.table({"id": ["x#0", "x#0"], "language": ["de", "pt"], "score": [0.5, -2.0]}), tmp_path / "s.parquet"
    )
    for name in ("s.csv", "s.tsv", "s.parquet"):
        assert create_estimator("given", {"path": str(tmp_path / name)}).estimate(rows) == [0.5, -2.0], name


def test_given_says_what_is_missing(tmp_path: Path, row: Row, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "s.csv"
    path.write_text("id,score\nx#0,0.5\ny#0,\n")
    given = create_estimator("given", {"path": str(path), "higher_is_better": False})
    assert not given.higher_is_better
    scores = given.estimate([row("a", "b", item="x"), row("a", "b", item="y"), row("a", "b", item="z")])
    assert [math.isnan(s) for s in scores] == [False, True, True]
    assert "no score for 2 of 3 rows, such as 'y#0'" in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,value\nx,1\n", "no column 'score'"),
        ("id,score\nx,good\n", ":2 \\[score\\]: 'good' is not a number"),
        ("id,score\nx,1\nx,2\n", "'x' occurs twice \\(also in line 2\\)"),
    ],
)
def test_given_names_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "s.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        create_estimator("given", {"path": str(path)})
    with pytest.raises(ConfigError, match="no file"):
        create_estimator("given", {"path": str(tmp_path / "absent.csv")})


def test_back_translation_needs_one(row: Row) -> None:
    estimator = create_estimator("chrf_back")
    same, other, none = estimator.estimate(
        [row("Good day", "x", back="Good day"), row("Good day", "x", back="Bad night"), row("Good day", "x")]
    )
    assert same == pytest.approx(100.0)
    assert other < 60
    assert math.isnan(none)


@pytest.mark.parametrize("measure", ["usim", "smatch", "triples"])
def test_graphs_of_back_translations_see_swapped_roles(row: Row, measure: str) -> None:
    source = "The dog did not bite the man."
    backs = ["The dog did not bite the man.", "The man did not bite the dog.", "The dog bit the man."]
    estimator = create_estimator("graph_back", {"measure": measure})
    same, swapped, affirmed = estimator.estimate([row(source, "x", back=back) for back in backs])
    assert same == pytest.approx(1.0)
    assert swapped < 1.0
    assert affirmed < 1.0


def test_graphs_that_are_missing_give_no_score_and_say_why(row: Row, caplog: pytest.LogCaptureFixture) -> None:
    rows = [
        row("The man sleeps.", "x", back="The man sleeps."),
        row("The man sleeps.", "x"),
        row("The man sleeps.", "", back="The man sleeps."),
        row("!!!", "x", back="!!!"),
        row("The man sleeps.", "x", back="他睡着了,因为他很累。"),
        dataclasses.replace(row("Der Mann schläft.", "x", back="Der Mann schläft."), source_language="de"),
    ]
    estimator = create_estimator("graph_back")
    scores = estimator.estimate(rows)
    assert scores[0] == pytest.approx(1.0)
    assert gaps(estimator, rows, scores) == [
        "",
        "no back-translation",
        "no translation",
        "graph of the source: empty",
        "graph of the back-translation: failed",
        "the source is not English",
    ]
    assert "no score for 5 of 6 rows" in caplog.text
    estimator.estimate(rows[1:2])
    assert "set translate.back: true" in caplog.text


def test_each_text_is_parsed_once_and_remembered(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    parse = DummyParser.parse

    def counted(self: DummyParser, texts: Sequence[str]) -> list[Graph]:
        seen.extend(texts)
        return parse(self, texts)

    monkeypatch.setattr(DummyParser, "parse", counted)
    options = {"parser": "dummy", "cache": str(tmp_path / "parse.sqlite")}
    rows = [row("Good day sir", "x", code, back="Good day man") for code in ("de", "pt", "zh")]
    scores = create_estimator("graph_back", options).estimate(rows)
    assert sorted(seen) == ["Good day man", "Good day sir"]
    assert create_estimator("graph_back", options).estimate(rows) == scores
    assert len(seen) == 2


def test_graph_back_refuses_unknown_measures_and_parsers() -> None:
    with pytest.raises(ConfigError, match="did you mean 'smatch'"):
        create_estimator("graph_back", {"measure": "smach"})
    with pytest.raises(ConfigError, match="did you mean 'dependency'"):
        create_estimator("graph_back", {"parser": "dependencie"})


def test_pieces_lose_nothing() -> None:
    text = "One two three, four five six. 七八九 " * 7
    for parts in (1, 2, 3, 10):
        assert "".join(pieces(text, parts)) == text
        assert len(pieces(text, parts)) == parts
    assert "".join(pieces("ab", 5)) == "ab"
