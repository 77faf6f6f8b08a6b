"""The contract of every estimator, and what is particular to the small ones."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mdialeval.errors import ConfigError, DataError
from mdialeval.rank.lengths import pieces
from mdialeval.rank.protocol import ESTIMATORS, QualityEstimator, create_estimator, truncated
from mdialeval.records import Translation
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
    assert [math.isnan(score) for score in scores] == [not row.hypothesis for row in mixed]
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


def test_pieces_lose_nothing() -> None:
    text = "One two three, four five six. 七八九 " * 7
    for parts in (1, 2, 3, 10):
        assert "".join(pieces(text, parts)) == text
        assert len(pieces(text, parts)) == parts
    assert "".join(pieces("ab", 5)) == "ab"
