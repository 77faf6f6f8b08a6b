"""Ranking inside each language: the cut, ties, NaN, reasons, keys, several k, and memory."""

from __future__ import annotations

import logging
import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mdialeval.config.load import parse
from mdialeval.errors import ConfigError
from mdialeval.rank.columns import Columns, ColumnsBuilder
from mdialeval.rank.funnel import funnels, sample_rows
from mdialeval.rank.select import cut, length_bins, ranking_key, select
from mdialeval.records import Translation

Row = Callable[..., Translation]


@pytest.fixture
def ranked(row: Row) -> Callable[..., Columns]:
    """Columns of one language from plain scores."""

    def build(scores: Sequence[float], language: str = "de", **options: bool) -> Columns:
        builder = ColumnsBuilder(**options)
        for i, score in enumerate(scores):
            builder.add(row(f"text {i}", f"Text {i}", language, item=f"d{i}"), score)
        return builder.build()

    return build


@pytest.mark.parametrize(
    ("n", "k", "expected"),
    [
        (10, 5, 1),
        (10, 100, 10),
        (1, 0.001, 1),
        (0, 50, 0),
        (3, 50, 2),
        (1000, 0.1, 1),
        (500, 2.2, 11),
        (100, 7, 7),
        (300, 75, 225),
    ],
)
def test_cut(n: int, k: float, expected: int) -> None:
    assert cut(n, k) == expected


@pytest.mark.parametrize("k", [0, -1, 150, 100.5, math.nan])
def test_k_outside_the_range_is_an_error(k: float) -> None:
    with pytest.raises(ConfigError, match="above 0 and at most 100"):
        cut(10, k)


def test_configuration_takes_one_k_or_several_and_refuses_0_and_150() -> None:
    assert parse({"rank": {"k": 5}}).rank.k == (5.0,)
    assert parse({"rank": {"k": [5, 10, 100]}}).rank.k == (5.0, 10.0, 100.0)
    for wrong in (0, 150, [5, 150], []):
        with pytest.raises(ConfigError, match=r"rank\.k"):
            parse({"rank": {"k": wrong}})


def test_ties_are_broken_by_input_order_or_all_kept(ranked: Callable[..., Columns]) -> None:
    columns = ranked([0.5, 0.9, 0.5, 0.5, 0.1])
    assert select(columns, 40).kept().tolist() == [True, True, False, False, False]
    keep_all = select(columns, 40, ties="keep-all")
    assert keep_all.kept().tolist() == [True, True, True, True, False]
    assert keep_all.rank.tolist() == [2, 1, 2, 2, 5]


def test_nan_ranks_last_is_counted_and_never_kept(
    ranked: Callable[..., Columns], caplog: pytest.LogCaptureFixture
) -> None:
    selection = select(ranked([math.nan, 0.2, math.nan, 0.4]), 100)
    assert selection.rank.tolist() == [3, 2, 4, 1]
    assert selection.kept().tolist() == [False, True, False, True]
    assert [selection.reason(i) for i in range(4)] == ["not_a_number", "kept", "not_a_number", "kept"]
    assert "2 of 4 rows have no score" in caplog.text
    (funnel,) = funnels(selection)
    assert {s.reason: s.n for s in funnel.steps} == {"not_a_number": 2, "kept": 2}


def test_all_nan_keeps_nothing(ranked: Callable[..., Columns]) -> None:
    selection = select(ranked([math.nan, math.nan]), 50)
    assert not selection.kept().any()
    assert funnels(selection)[0].cut_score is None


def test_constant_scores_are_said(ranked: Callable[..., Columns], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert select(ranked([0.0] * 4)).constant == ("de",)
    assert "all 4 scores equal 0" in caplog.text
    assert select(ranked([0.0])).constant == ()


def test_lower_is_better_scores_are_turned(ranked: Callable[..., Columns]) -> None:
    assert select(ranked([3.0, 1.0, 2.0], higher_is_better=False), 34).kept().tolist() == [False, True, True]


def test_languages_are_ranked_apart_and_flagged_rows_left_out(row: Row) -> None:
    builder = ColumnsBuilder()
    rows = [
        row("good day", "guten Tag", "de", item="a"),
        row("good day", "bom dia", "pt", item="a"),
        row("今天不行", "今天不行", "de", item="b", flags=("copied_source",)),  # Unbabel/COMET#192
        row("not today", "heute nicht", "de", item="c"),
        row("bye", "", "de", item="d"),
        row("bye", "tchau", "pt", item="d", flags=("number_mismatch",)),  # a flag that keeps the row
        row("bye", "", "pt", item="e", status="failed"),
    ]
    for r, score in zip(rows, [0.1, -5.0, 0.99, 0.3, 0.9, -6.0, 0.9], strict=True):
        builder.add(r, score)
    selection = select(builder.build(), 50)
    assert [selection.reason(i) for i in range(7)] == [
        "below_cut", "kept", "copied_source", "kept", "empty", "below_cut", "failed",
    ]  # fmt: skip
    records = [selection.record(i, r) for i, r in enumerate(rows)]
    assert [(r.score, r.rank, r.kept) for r in records[:3]] == [(0.1, 2, False), (-5.0, 1, True), (None, None, False)]
    assert [r.translation for r in records] == rows
    german, portuguese = funnels(selection, dict(enumerate(rows)))
    assert (german.n_in, german.n_ranked, german.n_out) == (4, 2, 1)
    assert [(s.reason, s.n, s.samples[0].hypothesis) for s in german.steps] == [
        ("copied_source", 1, "今天不行"), ("empty", 1, ""), ("below_cut", 1, "guten Tag"), ("kept", 1, "heute nicht"),
    ]  # fmt: skip
    assert sum(s.n for s in portuguese.steps) == portuguese.n_in == 3


def test_several_k_are_nested_and_equal_to_one_at_a_time(ranked: Callable[..., Columns]) -> None:
    columns = ranked(np.random.default_rng(0).normal(size=333).tolist())
    wanted = (5.0, 10.0, 20.0, 50.0, 75.0, 100.0)
    selection = select(columns, wanted)
    previous = np.zeros(333, bool)
    for k in wanted:
        kept = selection.kept(k)
        assert (kept | previous).tolist() == kept.tolist()
        assert kept.tolist() == select(columns, k).kept().tolist()
        assert kept.sum() == math.ceil(333 * k / 100)
        previous = kept
    assert [f.n_out for f in funnels(selection)] == [17, 34, 67, 167, 250, 333]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no finding
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=False, width=16), min_size=1, max_size=40), st.floats(0.01, 100)
)
def test_kept_rows_never_score_below_dropped_ones(scores: list[float], k: float) -> None:
    builder = ColumnsBuilder()
    for i, score in enumerate(scores):
        builder.add(Translation(f"{i}#0", str(i), 0, "a b", "c d", "en", "de", "x"), score)
    selection = select(builder.build(), k)
    values, kept = np.array(scores), selection.kept()
    assert kept.sum() == min(cut(len(scores), k), np.isfinite(values).sum())
    if kept.any() and (~kept & np.isfinite(values)).any():
        assert values[kept].min() >= np.nanmax(values[~kept & np.isfinite(values)])
    assert sorted(selection.rank) == list(range(1, len(scores) + 1))


def test_keys_take_the_turns_before_into_account(row: Row) -> None:
    builder = ColumnsBuilder()
    scores = {"a": [0.9, 0.1, 0.8, 0.5], "b": [0.4, math.nan, 0.6]}
    for turn in range(4):  # languages and items interleaved, as shards may hold them
        for item in "ab":
            if turn < len(scores[item]):
                builder.add(row("x", "y", item, item=item, turn=turn), scores[item][turn])
    columns = builder.build()
    order = [(i, t) for t in range(4) for i in "ab" if t < len(scores[i])]

    def by_item(key: str, turns: int) -> dict[str, list[float]]:
        values = ranking_key(columns, key, turns)  # type: ignore[arg-type]
        return {i: [round(float(values[order.index((i, t))]), 6) for t in range(len(scores[i]))] for i in "ab"}

    assert by_item("response", 1)["a"] == scores["a"]
    assert by_item("min", 1)["a"] == [0.9, 0.1, 0.1, 0.5]
    assert by_item("min", 3)["a"] == [0.9, 0.1, 0.1, 0.1]
    assert by_item("context+response", 1)["a"] == [0.9, 0.5, 0.45, 0.65]
    assert by_item("context+response", 9)["a"] == [0.9, 0.5, 0.6, 0.575]
    for key in ("min", "context+response"):
        assert [math.isnan(v) for v in by_item(key, 2)["b"]] == [False, True, True]


def test_samples_and_length_quintiles(row: Row) -> None:
    builder = ColumnsBuilder()
    for i in range(100):
        builder.add(row("x" * (i + 1), "y", item=str(i)), float(-i))  # the longer, the worse
    selection = select(builder.build(), 20)
    assert sample_rows(selection)["de", "below_cut"] == (20, 40, 60, 79, 99)
    assert funnels(selection)[0].kept_by_length == (1.0, 0.0, 0.0, 0.0, 0.0)


def test_no_rows_at_all() -> None:
    selection = select(ColumnsBuilder().build(), [10, 50])
    assert len(selection.kept()) == 0
    assert funnels(selection) == []


MEMORY = """
import random
from mdialeval.rank.columns import ColumnsBuilder
from mdialeval.rank.select import select
from mdialeval.rank.funnel import funnels
from mdialeval.records import Translation
n, languages = {n}, ("pt", "es", "fr", "de", "zh", "ja")
random.seed(1); builder = ColumnsBuilder()
for i in range(n // 24):
    for language in languages:
        for turn in range(4):
            builder.add(Translation(f"d{{i}}#{{turn}}", f"d{{i}}", turn, "some words", "any words", "en", language, "x"), random.random())
selection = select(builder.build(), [5, 10, 20, 50, 75, 100], key="min")
print(sum(f.n_out for f in funnels(selection) if f.k == 50), int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) // 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak memory from /proc")
@pytest.mark.parametrize(("n", "limit"), [(240_000, 250), pytest.param(5_000_000, 2000, marks=pytest.mark.slow)])
def test_memory_of_ranking(n: int, limit: int) -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY.format(n=n)], capture_output=True, text=True, check=True)
    kept, megabytes = map(int, done.stdout.split())
    assert abs(kept - n // 2) < 24
    assert megabytes < limit


@pytest.fixture
def by_length(row: Row) -> Callable[[int], Columns]:
    """Rows whose score falls with the length of the source, and some noise."""

    def build(n: int) -> Columns:
        rng = np.random.default_rng(4)
        builder = ColumnsBuilder()
        for i, length in enumerate(rng.integers(1, 60, n)):
            score = math.nan if i % 50 == 7 else -int(length) / 20 + rng.normal()
            builder.add(row("x" * int(length), "y", item=str(i)), score)
        return builder.build()

    return build


@pytest.mark.parametrize("strata", [2, 5, 7])
def test_each_stratum_keeps_its_own_best(by_length: Callable[[int], Columns], strata: int) -> None:
    columns = by_length(1000)
    wanted = (1.0, 5.0, 10.0, 37.5, 50.0, 75.0, 100.0)
    selection = select(columns, wanted, strata=strata)
    there = ~np.isnan(columns.score)
    bins = length_bins(columns.length, strata, there)
    sizes = np.bincount(bins[there])
    assert sizes.max() - sizes.min() <= 1
    assert all(columns.length[bins == b].max() <= columns.length[bins == b + 1].min() for b in range(strata - 1))
    previous = np.zeros(1000, bool)
    for k in wanted:
        kept = selection.kept(k)
        assert kept.sum() == min(cut(1000, k), there.sum())
        assert not (previous & ~kept).any()  # nested
        counts = np.bincount(bins[kept], minlength=strata)
        assert counts.max() - counts.min() <= 1
        for b in range(strata):
            inside = columns.score[bins == b], kept[bins == b]
            if inside[1].any() and not inside[1].all():
                assert inside[0][inside[1]].min() >= inside[0][~inside[1]].max()
        previous = kept


def test_strata_keep_the_lengths_of_the_corpus(by_length: Callable[[int], Columns]) -> None:
    columns = by_length(1000)
    (shares,), (plain,) = ([f.kept_by_length for f in funnels(select(columns, 50, strata=s))] for s in (5, 1))
    assert max(shares) - min(shares) < 0.08
    assert max(plain) - min(plain) > 0.5


def test_strata_treat_ties_and_missing_scores_as_ever(ranked: Callable[..., Columns]) -> None:
    columns = ranked([0.5, math.nan, 0.5, 0.5, 0.9, 0.1])  # one length, divided by input order: 0 2 3, 4 5
    assert select(columns, 50, strata=2).rank.tolist() == [2, 6, 3, 5, 1, 4]
    assert select(columns, 50, strata=2, ties="keep-all").rank.tolist() == [2, 6, 2, 2, 1, 5]
    assert select(ranked([0.1, 0.2]), 50, strata=5).rank.tolist() == [2, 1]
    with pytest.raises(ConfigError, match=r"rank\.strata"):
        parse({"rank": {"strata": 0}})
