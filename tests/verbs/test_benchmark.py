"""The benchmark: cells, shared stages, mean and spread over seeds, exported numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mdialeval import api
from mdialeval.config.benchmark import BenchmarkConfig
from mdialeval.errors import ConfigError
from mdialeval.store import Run
from mdialeval.verbs.benchmark import CellResult, cells, describe

Small = Callable[..., dict[str, Any]]


def test_cells_are_every_combination() -> None:
    section = BenchmarkConfig(strategies=["english", "top-k", "translate-train"], k=[5.0, 50.0], seeds=[1, 2])
    found = cells(section, ["pt", "es"])
    assert len(found) == len(set(found)) == 2 * (1 + 2 + 2)
    assert {cell.name for cell in found} == {"english", "top-5", "top-50", "translate-train"}


def test_strategies_share_stages_and_leave_one_table(small_run: Small) -> None:
    section = {"strategies": ["english", "translate-train", "top-k"], "k": [50], "seeds": [1, 2]}
    config = small_run(benchmark=section)
    config["train"]["dimensions"] = {"sensibleness": {}}
    config["rank"]["k"] = [50]
    found = api.benchmark(config)
    run = Run(found.report.parents[1])
    assert len(run.finished("translate")) == len(run.finished("rank")) == 1
    assert len(run.finished("train")) == 2 * (1 + 2 + 1)
    means = [r for r in found.results if r.seed == -1 and r.statistic == "spearman"]
    assert {r.strategy for r in means} == {"english", "translate-train", "top-50", "length", "dummy"}
    for row in means:
        seeds = [r for r in found.results if r.seed in (1, 2) and _same(r, row)]
        assert len(seeds) == (2 if row.strategy in ("english", "translate-train", "top-50") else 1)
        values = [r.value for r in seeds if r.value is not None]
        assert row.value == pytest.approx(sum(values) / len(values))
        assert (row.spread is not None) == (len(values) > 1)
    assert all(r.train_seconds is not None for r in found.results if r.seed == 1 and r.strategy == "english")
    alone = {r.language for r in means if r.strategy == "translate-train"}
    assert alone == {"pt"}  # the rated set has no Spanish, and a mean needs two languages
    assert (found.report.parent / "results.csv").exists()
    assert "| english |" in "\n".join(describe(found))
    times = {p: p.stat().st_mtime_ns for p in run.folder.rglob("part-*.parquet")}
    assert api.benchmark(config).results == found.results
    assert {p: p.stat().st_mtime_ns for p in run.folder.rglob("part-*.parquet")} == times


def _same(one: CellResult, other: CellResult) -> bool:
    names = ("strategy", "dataset", "language", "scorer_dimension", "dimension", "statistic")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def test_translate_test_scores_through_english(small_run: Small) -> None:
    config = small_run(
        benchmark={"strategies": ["translate-test"], "into_english": {"pt": "dummy:pt-en"}}, translate={}
    )
    config["train"]["dimensions"] = {"sensibleness": {}}
    found = api.benchmark(config)
    row = next(r for r in found.results if r.strategy == "translate-test" and r.language == "pt")
    assert (row.n, row.n_scored) == (12, 12)


def test_strategies_without_translations_say_what_is_missing(small_run: Small) -> None:
    with pytest.raises(ConfigError, match=r"multilingual need translations: set translate\.routes"):
        api.benchmark(small_run(translate={}, benchmark={"strategies": ["multilingual"]}))
    with pytest.raises(ConfigError, match="into_english"):
        api.benchmark(small_run(benchmark={"strategies": ["translate-test"]}))
