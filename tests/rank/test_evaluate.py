"""Meta-evaluation of estimators, gold files, and combined signals."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

from mdialeval.errors import ConfigError, DataError
from mdialeval.rank.columns import ColumnsBuilder
from mdialeval.rank.combine import combine
from mdialeval.rank.evaluate import QeEvaluation, evaluate_estimator, meta_evaluate
from mdialeval.rank.gold import first_shift, read_gold
from mdialeval.rank.select import select
from mdialeval.records import Translation
from mdialeval.report.kept import plot_kept
from mdialeval.verbs.evaluate import Evaluation, write

Row = Callable[..., Translation]


def test_correlations_are_scipys_with_intervals_around_them() -> None:
    rng = np.random.default_rng(1)
    gold = rng.normal(size=400)
    scores = gold + rng.normal(size=400)
    found = meta_evaluate(scores, gold, resamples=200)
    expected = (stats.pearsonr(scores, gold), stats.spearmanr(scores, gold), stats.kendalltau(scores, gold))
    for correlation, reference in zip(found.correlations, expected, strict=True):
        assert correlation.value == pytest.approx(reference.statistic)
        assert correlation.low is not None and correlation.high is not None
        assert correlation.low < reference.statistic < correlation.high
        assert correlation.high - correlation.low < 0.25


def test_kept_quality_lies_between_random_and_oracle() -> None:
    rng = np.random.default_rng(2)
    gold = rng.normal(size=300)
    found = meta_evaluate(gold + rng.normal(size=300), gold, [10, 50, 100], resamples=200)
    for kept in found.kept[:2]:
        assert kept.random_low < kept.random < kept.random_high < kept.mean < kept.oracle
        assert kept.low < kept.mean < kept.high
    assert found.kept[2].mean == pytest.approx(found.kept[2].oracle) == pytest.approx(gold.mean())
    assert [kept.n for kept in found.kept] == [30, 150, 300]


def test_constant_and_missing_scores_give_a_reason() -> None:
    found = meta_evaluate([1.0, 1.0, 1.0, math.nan], [1.0, 2.0, 3.0, 4.0], resamples=10)
    assert (found.n, found.n_scored) == (4, 3)
    assert {(c.value, c.reason) for c in found.correlations} == {(None, "constant scores")}
    assert meta_evaluate([0.1, 0.2, 0.3], [1, 1, 1], resamples=10).correlations[0].reason == "constant gold scores"
    assert meta_evaluate([math.nan], [1.0]).correlations[0].reason == "only 0 scored rows"
    assert meta_evaluate([math.nan], [1.0]).kept == ()


def test_different_lengths_name_both_counts() -> None:
    with pytest.raises(DataError, match=r"3 scores for 4 gold scores.*row 4"):
        meta_evaluate([1, 2, 3], [1, 2, 3, 4])


def test_estimators_where_lower_is_better_are_turned(tmp_path: Path) -> None:
    class Errors:
        identity, higher_is_better = "errors", False

        def estimate(self, pairs: list[Translation]) -> list[float]:
            return [float(len(p.hypothesis)) for p in pairs]

    path = tmp_path / "gold.jsonl"
    path.write_text(
        "\n".join(f'{{"source": "a", "mt": "{"x" * i}", "score": {-i}, "lp": "en-de"}}' for i in range(1, 9))
    )
    (found,) = evaluate_estimator(Errors(), read_gold(path))
    assert (found.language, found.correlations[0].value) == ("de", pytest.approx(1.0))


def test_mlqe_pe_tables_and_lines(shared_data: Path) -> None:
    german = read_gold(shared_data / "mlqe-pe" / "test20.ende.df.short.tsv")
    assert (len(german), german[0].translation.language, german[0].translation.source_language) == (1000, "de", "en")
    chinese = read_gold(shared_data / "mlqe-pe" / "dev.enzh.df.short.tsv")  # pandas' defaults lose rows of this file
    assert (len(chinese), chinese[0].translation.language) == (1000, "zh")
    lines = read_gold(shared_data / "mlqe-pe" / "test21.enja.mt")
    assert (len(lines), lines[0].translation.language) == (1000, "ja")
    assert [g.score for g in lines] == [g.score for g in read_gold(shared_data / "mlqe-pe" / "test21.enja.src")]
    assert lines[0].score == pytest.approx(0.5892486)


def test_wmt_csv_with_language_pairs(tmp_path: Path) -> None:
    path = tmp_path / "da.csv"
    path.write_text('lp,src,mt,ref,score\nen-cs,"a, b",c,r,0.5\nzh-en,今天,today,r,-1\n', encoding="utf-8-sig")
    gold = read_gold(path)
    assert [(g.translation.source_language, g.translation.language, g.score) for g in gold] == [
        ("en", "cs", 0.5),
        ("zh", "en", -1.0),
    ]
    assert gold[0].translation.source == "a, b"


def test_hter_counts_edits(tmp_path: Path) -> None:
    for ending, text in ((".src", "a\nb\n"), (".mt", "c\nd\n"), (".hter", "0.0\n0.7\n")):
        (tmp_path / f"dev.en-de{ending}").write_text(text)
    assert [g.score for g in read_gold(tmp_path / "dev.en-de.mt")] == [0.0, -0.7]


def test_files_of_different_length_name_counts_and_the_suspicious_line(tmp_path: Path) -> None:
    source = [" ".join(["word"] * n) for n in (3, 9, 1, 14, 5, 2, 11, 7)]
    hypothesis = [text.replace("word", "Wort") for text in source]
    del hypothesis[4]
    for ending, lines in ((".src", source), (".mt", hypothesis), (".da", ["0.1"] * 8)):
        (tmp_path / f"x.en-de{ending}").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r"x\.en-de\.src 8, x\.en-de\.mt 7, x\.en-de\.da 8.*line 5"):
        read_gold(tmp_path / "x.en-de.src")
    assert first_shift(["a", "b", "c"], ["a", "", "b", "c"])[0] == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("source\tmt\n", "holds no rows"),
        ("source\tscore\na\t1\n", r"gold\.en-de\.tsv:2: no column 'hypothesis' or"),
        ("source\tmt\tscore\na\tb\thigh\n", r":2: 'high' is not a score"),
        ("source\tmt\tscore\na\tb\tnan\n", r":2: the score is nan"),
    ],
)
def test_wrong_gold_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "gold.en-de.tsv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_gold(path)


def test_gold_without_a_language(tmp_path: Path) -> None:
    path = tmp_path / "gold.tsv"
    path.write_text("source\tmt\tscore\na\tb\t1\n")
    with pytest.raises(ConfigError, match="says the language"):
        read_gold(path)
    assert read_gold(path, language="pt_BR")[0].translation.language == "pt"


def test_combined_scores_are_weighted_z_scores_inside_a_language(row: Row) -> None:
    builder = ColumnsBuilder()
    for i in range(6):
        builder.add(row("a b", "c d", "de" if i < 3 else "pt", item=str(i)), 0.0)
    builder.add(row("a b", "", "pt", item="left out"), 0.0)
    columns = builder.build()
    one = [1.0, 2.0, 3.0, 100.0, 300.0, 200.0, 9.0]
    two = [0.3, 0.2, 0.1, 5.0, 5.0, 5.0, 9.0]  # constant in pt
    combined = combine(columns, {"comet": one, "cosine": two}, {"comet": 3, "cosine": 1})
    z = stats.zscore([1, 2, 3])
    assert combined.score[:3] == pytest.approx(0.75 * z + 0.25 * -z)
    assert combined.score[3:6] == pytest.approx(0.75 * stats.zscore([100, 300, 200]))
    assert math.isnan(combined.score[6])
    assert select(combined, 34).kept().tolist() == [False, True, True, False, True, True, False]
    missing = combine(columns, {"comet": [*one[:2], math.nan, *one[3:]]}, {"comet": 1})
    assert math.isnan(missing.score[2])


def test_combining_refuses_what_does_not_fit(row: Row) -> None:
    builder = ColumnsBuilder()
    builder.add(row("a", "b"), 0.0)
    columns = builder.build()
    with pytest.raises(ConfigError, match="'cosine' has no weight"):
        combine(columns, {"comet": [1], "cosine": [1]}, {"comet": 1})
    with pytest.raises(ConfigError, match="all weights are zero"):
        combine(columns, {"comet": [1]}, {"comet": 0})
    with pytest.raises(DataError, match="2 scores for 1 rows"):
        combine(columns, {"comet": [1, 2]}, {"comet": 1})


@pytest.fixture
def evaluations() -> list[QeEvaluation]:
    rng = np.random.default_rng(3)
    found = []
    for language in ("de", "pt"):
        gold = rng.normal(size=200)
        found.append(meta_evaluate(gold + rng.normal(size=200), gold, language=language, resamples=50))
    return found


@pytest.mark.parametrize("ending", [".json", ".jsonl", ".csv", ".parquet"])
def test_evaluations_are_written_with_their_picture(
    evaluations: list[QeEvaluation], tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"qe{ending}"
    write(Evaluation(evaluations, "estimator:x|y:1"), path, None)
    readers = {".json": lambda: json.loads(path.read_text()), ".parquet": lambda: pq.read_table(path).to_pylist()}
    readers[".csv"] = lambda: list(csv.DictReader(path.open()))
    readers[".jsonl"] = lambda: [json.loads(line) for line in path.read_text().splitlines()]
    rows = readers[ending]()
    assert [row["figure"] for row in rows] == (["pearson", "spearman", "kendall_tau_b"] + ["kept"] * 6) * 2
    kept = rows[3]
    assert (kept["language"], float(kept["k"]), int(kept["rows"])) == ("de", 5.0, 10)
    assert float(kept["value"]) == pytest.approx(evaluations[0].kept[0].mean)
    assert {row["estimator"] for row in rows} == {"estimator:x|y:1"}
    assert (tmp_path / "qe.png").read_bytes().startswith(b"\x89PNG")


def test_the_picture_shows_every_language_and_k_and_is_the_same_each_time(
    evaluations: list[QeEvaluation], tmp_path: Path
) -> None:
    for name in ("a.svg", "b.svg"):
        plot_kept([*evaluations, meta_evaluate([math.nan], [1.0], language="xx")], tmp_path / name, "estimator:x")
    text = (tmp_path / "a.svg").read_text()
    assert text == (tmp_path / "b.svg").read_text()
    for label in ("de (n = 200, Spearman", "pt (n = 200, Spearman", "random", "oracle", "mean human score", ">75<"):
        assert label in re.sub(r"<!--(.*?)-->", r">\1<", text).replace("> ", ">").replace(" <", "<"), label
    plot_kept([], tmp_path / "none.png")
    with pytest.raises(ConfigError, match=r"unknown ending '.gif' of a plot: use one of .png"):
        plot_kept(evaluations, tmp_path / "x.gif")
