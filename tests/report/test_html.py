"""The page: complete, escaped, self-contained, the same twice."""

from __future__ import annotations

import html
import itertools
import os
import re
import subprocess
import sys
from dataclasses import fields, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mdialeval.agreement.systems import SystemRow
from mdialeval.records import Agreement
from mdialeval.report.data import Funnel, RatedSet, ReportData
from mdialeval.report.html import render, write_report
from mdialeval.report.tables import interval, number

VOID = {"meta", "br", "hr", "img", "input", "link", "col"}


class Outline(HTMLParser):
    """Elements, ids and unbalanced tags of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.names: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [(key, value or "") for key, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [(key, value or "") for key, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


@pytest.fixture(scope="module")
def page(report_data: ReportData) -> str:
    return render(report_data)


def test_every_number_is_in_the_page(page: str, report_data: ReportData) -> None:
    text = html.unescape(page)
    for a in report_data.agreements:
        assert number(a.value) in text
        assert interval(a.low, a.high) in text
        if a.n_scored < a.n:
            assert f"{a.n_scored} of {a.n}" in text
        if a.value is None:
            assert a.reason in text
    for c in report_data.comparisons:
        assert number(c.value) in text
        assert interval(c.low, c.high) in text
    for shown in ("−0.123", "0.375", "0.312", "44.12", "0.100", "40.0 %", "11<small>of 100</small>", "120 of 4000"):
        assert shown in text, shown


def test_every_section_and_every_text_is_in_the_page(page: str, report_data: ReportData) -> None:
    for anchor in re.findall(r'href="#(\w+)"', page.split("</nav>")[0]):
        assert f'id="{anchor}"' in page
    for text in (
        "行きましょうか。",
        "شاي؟",
        "判定器",
        "The ratings are human judgements",
        "d1#2",
        "scorer:evaluator|dtype:float32",
    ):
        assert text in page
    assert 'lang="ja"' in page
    assert page.count('dir="auto"') == 2 * 3


def test_hostile_text_is_only_text(page: str) -> None:
    outline = Outline(page)
    assert "script" not in outline.names
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not [key for key, _ in outline.attributes if key.startswith("on")]


def test_the_page_is_well_formed_and_ids_are_unique(page: str) -> None:
    outline = Outline(page)
    assert (outline.wrong, outline.open) == ([], [])
    ids = [value for key, value in outline.attributes if key == "id"]
    assert len(ids) == len(set(ids))
    used = {value[1:] for key, value in outline.attributes if key == "href"} | set(re.findall(r"url\(#([^)]+)\)", page))
    assert used <= set(ids)


def test_the_page_fetches_nothing(page: str) -> None:
    assert not re.search(r"https?:|//[\w-]+\.\w|@import|url\((?!#)", page)
    outline = Outline(page)
    assert not {"link", "script", "img", "iframe", "object"} & set(outline.names)
    assert all(value.startswith("#") for key, value in outline.attributes if key in ("href", "src"))


def test_figures_take_the_pages_colours(page: str) -> None:
    figures = re.findall(r"<svg.*?</svg>", page, flags=re.S)
    assert len(figures) >= 8
    assert not [f for f in figures if "#0102" in f]
    assert all("var(--" in f for f in figures)


def test_tick_labels_are_not_shortened(page: str) -> None:
    """Coordinates are rounded to two decimals, texts are not: a tick at 0.375 must not read 0.37."""
    figure = page[page.index("Kept quality</h4>") :].split("</svg>")[0]
    labels = [float(t.replace("−", "-")) for t in re.findall(r">\s*(−?\d+\.?\d*)\s*</text>", figure)]
    heights = labels[labels.index(max(labels[:8])) + 1 :]
    steps = {round(b - a, 6) for a, b in itertools.pairwise(heights)}
    assert len(steps) == 1


def test_missing_rows_and_constants_are_warnings(page: str) -> None:
    warnings = html.unescape(page.split('id="notices"')[1].split("</section>")[0])
    assert "(sensibleness) on talk</b>: rated rows without a score (en: 45 of 60 scored)" in warnings
    assert "判定器 (sensibleness) on talk</b>: constant predictions, so no correlation is defined (ja)" in warnings
    assert "7 turns were cut" in warnings


def test_the_headline_is_the_best_mean_with_its_coverage(page: str, report_data: ReportData) -> None:
    means = [
        a for a in report_data.agreements if a.language == "mean" and a.statistic == "spearman" and a.value is not None
    ]
    best = max(means, key=lambda a: a.value or 0.0)
    card = html.unescape(page.split('id="numbers"')[1].split("</section>")[0])
    assert f'<div class="value">{number(best.value)} <small>{interval(best.low, best.high)}</small>' in card
    assert f"{best.n_scored} of {best.n} rows scored" in card
    assert "rated by people" in card


def test_labels_by_construction_never_pass_as_human(report_data: ReportData) -> None:
    page = render(replace(report_data, sets=(RatedSet("talk", "by construction", 120, ("en", "ja")),)))
    assert "labels by construction" in page
    assert "nobody rated them" in page
    assert "human judgements" not in page
    assert "rated by people" not in page


@pytest.mark.parametrize("part", [f.name for f in fields(ReportData) if f.name not in ("title", "run")])
def test_every_part_stands_alone(part: str, report_data: ReportData) -> None:
    page = render(replace(ReportData("t", "r"), **{part: getattr(report_data, part)}))
    outline = Outline(page)
    assert (outline.wrong, outline.open) == ([], [])
    for anchor in re.findall(r'href="#(\w+)"', page.split("</nav>")[0]):
        assert f'id="{anchor}"' in page


def test_an_empty_report_is_a_page() -> None:
    page = render(ReportData("Nothing yet", "r"))
    assert "Nothing yet" in page
    assert "<svg" not in page


def test_a_single_undefined_agreement_is_a_dash() -> None:
    lone = Agreement("s", "d", "en", "x", "y", 2, 2, "spearman", None, reason="fewer than 3 rows")
    page = render(ReportData("t", "r", agreements=(lone,)))
    assert "–<sup>1</sup>" in page
    assert "<li>fewer than 3 rows</li>" in page


def test_all_files_are_written(report_data: ReportData, page: str, tmp_path: Path) -> None:
    written = write_report(report_data, tmp_path / "new")
    assert written == tmp_path / "new" / "report.html"
    names = sorted(p.name for p in written.parent.iterdir())
    assert names == ["agreement.csv", "agreement.md", "agreement.tex", "report.html"]
    assert written.read_text(encoding="utf-8") == page  # drawn twice, the same bytes


def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
    data = ReportData("t", "r", funnels=(Funnel("ja", 9, (("empty", 4), ("below_cut", 2)), 3),))
    code = """
import sys, pathlib
from mdialeval.report.data import *
from mdialeval.report.html import write_report
f = Funnel("ja", 9, (("empty", 4), ("below_cut", 2)), 3)
write_report(ReportData("t", "r", funnels=(f,)), pathlib.Path(sys.argv[1]))
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env={**os.environ, "PYTHONHASHSEED": "3"})
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == render(data)


def test_a_judges_agreement_with_itself_stands_beside_that_with_the_ratings(page: str, report_data: ReportData) -> None:
    part = page.partition('id="repeats"')[2].partition("</section>")[0]
    assert "0.812" in part and "58<small>of 60</small>" in part and "constant ratings" in part
    (english,) = [
        a for a in report_data.agreements if (a.scorer, a.language, a.statistic) == ("evaluator", "en", "spearman")
    ]
    assert f"{english.value:.3f}<small>overall" in part


def test_systems_are_listed_with_how_often_the_best_one_wins() -> None:
    rows = (
        SystemRow("talk", "judge", "sensibleness", "sensible", 40, 1.0, 0.61, None),
        SystemRow("talk", "judge", "sensibleness", "off_topic", 40, 0.0, 0.2, 0.875),
    )
    part = render(ReportData("t", "r", systems=rows)).partition('id="systems"')[2].partition("</section>")[0]
    assert "off topic" in part and "0.875" in part
    assert part.count("<tr>") == 3
