"""Agreements as Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import fields, replace

import pytest

from mdialeval.records import Agreement
from mdialeval.report.data import ReportData
from mdialeval.report.tables import Table, tables, to_csv, to_latex, to_markdown

BASE = Agreement("a", "set", "en", "sensibleness", "overall", 20, 20, "spearman", 0.5, 0.4, 0.6)


def rows() -> list[Agreement]:
    return [
        BASE,
        replace(BASE, language="zh", value=-0.25, low=-0.5, high=0.0),
        replace(BASE, scorer="b", value=0.4996),
        replace(
            BASE, scorer="b", language="zh", n_scored=15, value=None, low=None, high=None, reason="constant predictions"
        ),
        replace(BASE, scorer="b_2 & more", language="en", value=0.1, low=None, high=None),
    ]


@pytest.fixture
def table() -> Table:
    (only,) = tables(rows())
    return only


def test_best_is_the_highest_shown_value_and_never_an_undefined_one(table: Table) -> None:
    bold = {
        (row.scorer, c): cell.best
        for row in table.rows
        for c, cell in zip(table.columns, row.cells, strict=True)
        if cell
    }
    assert bold == {
        ("a", "en"): True,
        ("b", "en"): True,
        ("b_2 & more", "en"): False,
        ("a", "zh"): False,
        ("b", "zh"): False,
    }


def test_the_only_value_of_a_column_is_not_best_of_anything(table: Table) -> None:
    assert not table.rows[0].cells[1].best  # type: ignore[union-attr]


def test_markdown(table: Table) -> None:
    lines = to_markdown(table).splitlines()
    assert lines[2] == "| scorer | measures | en (n=20) | zh (n=20) |"
    assert lines[4] == "| a | sensibleness | **0.500** [0.400, 0.600] | −0.250 [−0.500, 0.000] |"
    assert lines[5] == "| b | sensibleness | **0.500** [0.400, 0.600] | –<sup>1</sup> (15 of 20) |"
    assert lines[6] == "| b\\_2 & more | sensibleness | 0.100 |  |"
    assert lines[8] == "1. constant predictions"
    assert {line.count(" | ") for line in lines[2:3] + lines[4:7]} == {3}


def test_markdown_cells_cannot_break_the_table() -> None:
    (hostile,) = tables([replace(BASE, scorer="x|y\n<b>*z*")])
    lines = to_markdown(hostile).splitlines()
    assert lines[4].startswith("| x\\|y &lt;b&gt;\\*z\\* | sens")


def test_latex(table: Table) -> None:
    text = to_latex(table)
    assert r"\toprule" in text
    assert r"Scorer & Measures & en (20) & zh (20) \\" in text
    assert (
        r"a & sensibleness & \textbf{0.500} {\scriptsize [0.400, 0.600]} & $-$0.250 {\scriptsize [$-$0.500, 0.000]} \\"
        in text
    )
    assert r"--\textsuperscript{1} {\scriptsize 15 of 20}" in text
    assert r"b\_2 \& more" in text
    assert r"Spearman $\rho$" in text
    assert "(1) constant predictions." in text


def test_csv_gives_every_field_back(report_data: ReportData) -> None:
    read = list(csv.DictReader(io.StringIO(to_csv(report_data.agreements))))
    assert len(read) == len(report_data.agreements)
    for row, a in zip(read, report_data.agreements, strict=True):
        for field in fields(Agreement):
            value = getattr(a, field.name)
            if isinstance(value, float):
                assert float(row[field.name]) == value
            else:
                assert row[field.name] == ("" if value is None else str(value))


def test_languages_come_english_first_and_mean_last(report_data: ReportData) -> None:
    assert {t.columns for t in tables(report_data.agreements) if not t.statistic.count("_chance")} >= {
        ("en", "ja", "mean")
    }


def test_chance_and_bounds_never_compete(report_data: ReportData) -> None:
    beside = [t for t in tables(report_data.agreements) if t.statistic.endswith(("_chance", "_worst", "_best"))]
    assert len(beside) >= 3
    assert not [c for t in beside for row in t.rows for c in row.cells if c and c.best]


def test_bounds_of_missing_rows_stand_beside_the_coverage() -> None:
    scored = replace(BASE, n_scored=15)
    worst = replace(scored, statistic="spearman_missing_worst", value=-0.125, low=None, high=None)
    best = replace(worst, statistic="spearman_missing_best", value=0.75)
    main = next(t for t in tables([scored, worst, best]) if t.statistic == "spearman")
    assert main.rows[0].cells[0] is not None and main.rows[0].cells[0].bounds == "−0.125 to 0.750"
    assert "0.500 [0.400, 0.600] (15 of 20, −0.125 to 0.750)" in to_markdown(main)
    assert r"{\scriptsize [0.400, 0.600] 15 of 20 $-$0.125 to 0.750}" in to_latex(main)
