"""The benchmark: cells, shared stages, mean and spread over seeds, exported numbers."""

from __future__ import annotations

import json
import logging
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mdialeval import api
from mdialeval.config.benchmark import BenchmarkConfig
from mdialeval.errors import ConfigError
from mdialeval.records import Agreement
from mdialeval.store import Run
from mdialeval.tables import read_parquet
from mdialeval.verbs.benchmark import describe, sweeps
from mdialeval.verbs.cells import Cell, cell_config, cells, check_strategies, jobs
from mdialeval.verbs.results import CellResult, to_latex, to_markdown
from mdialeval.verbs.train import training_seconds

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
    folder = found.report.parent
    for name in ("results.csv", "results.parquet", "results.md", "results.tex", "comparisons.csv"):
        assert (folder / name).stat().st_size > 0
    assert list(read_parquet(folder / "results.parquet", CellResult)) == list(found.results)
    assert "| english |" in "\n".join(describe(found))
    times = {p: p.stat().st_mtime_ns for p in run.folder.rglob("part-*.parquet")}
    assert api.benchmark(config).results == found.results
    assert {p: p.stat().st_mtime_ns for p in run.folder.rglob("part-*.parquet")} == times


def _same(one: CellResult, other: CellResult) -> bool:
    names = ("strategy", "dataset", "language", "scorer_dimension", "dimension", "statistic")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def test_means_of_strategies_stand_beside_them_seed_by_seed(small_run: Small) -> None:
    config = small_run(benchmark={"strategies": ["english", "translate-train"], "seeds": [1, 2]})
    config["train"]["dimensions"] = {"sensibleness": {}}
    config["score"]["average"] = [{"name": "both", "members": ["english", "translate-train"]}]
    found = api.benchmark(config)
    rows = [r for r in found.results if r.strategy == "both" and r.statistic == "spearman"]
    assert {(r.seed, r.language) for r in rows} == {(1, "pt"), (2, "pt"), (-1, "pt")}  # what all members scored
    assert all(r.n_scored == r.n > 0 and r.value is not None for r in rows)
    assert "mean of ranks" in rows[0].signature and "mean of ranks" in found.report.read_text()
    config["score"]["average"] = [
        {"name": "odd", "members": ["english", "length"]},
        {"name": "plain", "members": ["length", "size"]},
    ]
    config["score"]["scorers"].append({"name": "size", "scorer": "length"})
    again = api.benchmark(config)  # told, and nothing that was computed is lost
    assert "no dimension has scores of two of" in again.failures[0].text and again.failures[0].cell.name == "odd"
    assert {r.strategy for r in again.results} == {r.strategy for r in found.results} - {"both"} | {"size", "plain"}
    rows = [r for r in again.results if r.strategy == "plain"]
    assert {r.seed for r in rows} == {1, -1}  # as its members, it has neither seeds nor a training
    assert all(r.train_seconds is None and r.spread is None for r in rows)
    assert again.failures[0].text.startswith("odd, seed 1: rated")
    config["score"]["scorers"].append({"name": "english", "scorer": "length"})
    with pytest.raises(ConfigError, match=r"one name \(english\)"):  # it would stand in the strategy's place
        api.benchmark(config)
    config["score"]["scorers"].pop()
    config["score"]["average"] = [{"name": "both", "members": ["english", "multilingual"]}]
    with pytest.raises(ConfigError, match="no scorer 'multilingual' to join"):
        api.benchmark(config)


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


def _tuned(small_run: Small, **benchmark: Any) -> dict[str, Any]:
    config = small_run(translate={"routes": {"es": "dummy"}}, benchmark=benchmark)
    config["train"]["dimensions"] = {"sensibleness": {}}
    config["train"]["tuning"] = {"language_model": {"steps": 2, "max_tokens": 24}}
    return config


def test_a_strategy_that_scores_no_language_of_a_set_has_no_row_there(
    small_run: Small, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    section = {"strategies": ["english", "translate-test", "translate-train"], "into_english": {"pt": "dummy:pt-en"}}
    config = _tuned(small_run, **section)
    rows = [
        {"id": f"g{i}", "language": "de", "context": ["Ja?"], "response": f"Gut, {i}.", "ratings": {"quality": i % 3}}
        for i in range(12)
    ]
    path = tmp_path / "german.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    config["score"]["sets"].append({"name": "german", "path": str(path), "labels": "construction"})
    with caplog.at_level(logging.WARNING):
        found = api.benchmark(config)
    assert not found.failures
    assert {r.strategy for r in found.results if r.dataset == "german"} == {"english", "length", "dummy"}
    assert "translate-test" in {r.strategy for r in found.results if r.dataset == "rated"}
    assert "german: translate-test scores none of its languages" in caplog.text


def test_lora_and_madx_are_strategies(small_run: Small) -> None:
    found = api.benchmark(_tuned(small_run, strategies=["english", "lora", "madx"], seeds=[1, 2]))
    assert not found.failures
    run = Run(found.report.parents[1])
    assert len(run.finished("language")) == 2  # English and Spanish, once for both seeds
    kinds = Counter(stage.settings["tuning"]["kind"] for stage in run.finished("train"))
    assert kinds == {"full": 2, "lora": 2, "madx": 2}
    assert not any("language_model" in stage.settings["tuning"] for stage in run.finished("train"))
    by_kind = {stage.settings["tuning"]["kind"]: stage for stage in run.finished("train")}
    cards = {k: json.loads((s.folder / "evaluator/evaluator.json").read_text()) for k, s in by_kind.items()}
    assert cards["lora"]["training"]["languages"].keys() == {"en", "es"}
    assert cards["madx"]["training"]["languages"].keys() == {"en"}
    assert {r.strategy for r in found.results if r.seed == -1} == {"english", "lora", "madx", "length", "dummy"}


def test_cells_in_several_processes_give_the_same_numbers(small_run: Small, tmp_path: Path) -> None:
    section = {"strategies": ["english", "multilingual", "translate-test"], "threads": 1, "seeds": [1]}
    section["into_english"] = {"pt": "dummy:pt-en"}
    one = _tuned(small_run, **section) | {"runs": str(tmp_path / "one")}
    two = _tuned(small_run, **section, parallel=2) | {"runs": str(tmp_path / "two")}
    first, second = api.benchmark(one), api.benchmark(two)
    assert [_timeless(row) for row in second.results] == [_timeless(row) for row in first.results]
    assert second.comparisons == first.comparisons
    shards = {p.relative_to(tmp_path / "one"): p.read_bytes() for p in (tmp_path / "one").rglob("*/part-*.parquet")}
    assert shards
    assert {
        p.relative_to(tmp_path / "two"): p.read_bytes() for p in (tmp_path / "two").rglob("*/part-*.parquet")
    } == shards


def _timeless(row: CellResult) -> CellResult:
    return replace(row, train_seconds=None)


@pytest.mark.parametrize("parallel", [1, 2])
def test_a_failed_cell_is_told_and_the_others_go_on(small_run: Small, parallel: int) -> None:
    section = {"strategies": ["english", "translate-test"], "into_english": {"pt": "no-such-engine"}, "threads": 1}
    config = _tuned(small_run, **section, parallel=parallel)
    found = api.benchmark(config)
    assert [failure.cell.strategy for failure in found.failures] == ["translate-test"]
    assert "no-such-engine" in str(found.failures[0].error)
    assert any(r.strategy == "english" and r.value is not None for r in found.results)
    assert any(line.startswith("FAILED translate-test, seed 13: ") for line in describe(found))
    assert "no-such-engine" in found.report.read_text()


def test_where_every_cell_fails_the_first_error_is_raised(small_run: Small) -> None:
    section = {"strategies": ["translate-test"], "into_english": {"pt": "no-such-engine"}}
    with pytest.raises(ConfigError, match="no-such-engine"):
        api.benchmark(_tuned(small_run, **section))


@pytest.mark.slow
def test_a_killed_process_costs_its_own_cells_only_and_a_second_run_mends_them(
    small_run: Small, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    values = _tuned(small_run, strategies=["english", "multilingual"], parallel=2, threads=1)
    module = tmp_path / "dying_task.py"
    module.write_text(
        "import os, signal\n"
        "from pathlib import Path\n"
        "from mdialeval.tasks.sensibleness import Sensibleness\n"
        "class Dying(Sensibleness):\n"
        "    def pairs(self, items, seed):\n"
        "        items = list(items)\n"
        "        if {item.language for item in items} != {'en'} and not Path(__file__).with_name('mended').exists():\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "        yield from super().pairs(items, seed)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    values["train"]["dimensions"] = {"sensibleness": {"task": "dying_task:Dying"}}
    found = api.benchmark(values)
    assert [failure.cell.strategy for failure in found.failures] == ["multilingual"]
    assert "ended with code -9" in str(found.failures[0].error)
    (tmp_path / "mended").touch()
    again = api.benchmark(values)
    assert not again.failures
    assert {r.strategy for r in again.results} >= {"english", "multilingual"}


def test_cells_of_one_training_stay_in_one_job(small_run: Small) -> None:
    section = {"strategies": ["english", "translate-test", "multilingual", "top-k", "lora", "madx"], "k": [5, 100]}
    config = api.read_config(small_run(benchmark=section))
    found = jobs(config, cells(config.benchmark, ["pt"]))
    names = [[cell.name for cell in job] for job in found]
    assert names == [["english", "translate-test"], ["multilingual", "top-100"], ["top-5"], ["lora"], ["madx"]]


def test_a_recipe_that_freezes_the_encoder_is_for_the_other_strategies(small_run: Small) -> None:
    config = _tuned(small_run, strategies=["english", "lora"])
    config["train"] |= {"trainable_layers": 0, "dimensions": {"sensibleness": {"recipe": {"trainable_layers": 0}}}}
    made = api.read_config(config)
    lora, english = (cell_config(made, Cell(name, None, None, 13)).train for name in ("lora", "english"))
    assert lora.of("sensibleness").trainable_layers is None
    assert english.of("sensibleness").trainable_layers == 0
    config["train"]["graph"] = {"use": "joint", "only": True}
    with pytest.raises(ConfigError, match="lora put weights of their own"):
        api.benchmark(config)
    del config["train"]["graph"]
    config["train"]["dimensions"]["sensibleness"]["recipe"] = {"encoder": "likelihood"}
    with pytest.raises(ConfigError, match=r"and sensibleness reads no text \(encoder: likelihood\)"):
        api.benchmark(config)


def test_tables_show_value_spread_interval_coverage_time_and_signature() -> None:
    row = CellResult(
        "top-5", 5.0, -1, "a_set", "pt", "sensibleness", "overall", "spearman", 10, 9, 0.41, 0.3, 0.5, 0.012, 61.4,
        "scorer=evaluator", "",
    )  # fmt: skip
    rows = [row, replace(row, language="en", value=None, reason="constant predictions"), replace(row, seed=13)]
    text, latex = to_markdown(rows), to_latex(rows)
    assert "0.410 ± 0.012 [0.300, 0.500] (9 of 10)" in text
    assert "– (constant predictions)" in text
    assert "| 61 s |" in text
    assert "- top-5, seed 13: `scorer=evaluator`" in text
    assert r"a\_set" in latex
    assert r"0.410 $\pm$ 0.012 [0.300, 0.500] (9 of 10)" in latex
    assert Cell("top-k", 5.0, None, 13).whole.label == "top-5, seed 13"


def test_the_sweep_over_k_is_a_line_a_language_and_names_the_best() -> None:
    row = Agreement("top-5", "a", "en", "sensibleness", "overall", 10, 10, "spearman", 0.2)
    values = {("top-5", "pt"): 0.4, ("top-50", "en"): 0.3, ("top-50", "pt"): 0.1, ("multilingual", "en"): 0.25}
    rows = [row, *(replace(row, scorer=name, language=code, value=v) for (name, code), v in values.items())]
    (curves,) = sweeps([*rows, replace(row, scorer="english")], "spearman")
    assert {line.name: [(p.x, p.y) for p in line.points] for line in curves.series} == {
        "en": [(5, 0.2), (50, 0.3), (100, 0.25)],
        "pt": [(5, 0.4), (50, 0.1)],
    }
    assert "Highest: en at 50, pt at 5." in curves.note
    _, more = sweeps([*rows, *(replace(r, scorer=f"{r.scorer}+likelihood", value=0.5) for r in rows)], "spearman")
    assert more.title.endswith("with likelihoods") and {p.y for line in more.series for p in line.points} == {0.5}


def test_strategies_with_likelihood_train_nothing_twice(small_run: Small, causal: Path) -> None:
    names = ["english", "english+likelihood", "top-k+likelihood", "translate-test+likelihood"]
    config = small_run(benchmark={"strategies": names, "k": [50], "into_english": {"pt": "dummy:pt-en"}})
    config["train"] |= {"dimensions": {"sensibleness": {}}, "likelihood": str(causal), "epochs": 1}
    with_all = api.benchmark(config)
    assert not with_all.failures
    run = Run(with_all.report.parents[1])
    trained = run.finished("train")
    assert len(trained) == 2 * 2  # English and top-50, each with and without
    more = [stage for stage in trained if "likelihood" in stage.settings]
    assert len(more) == 2 and all(stage.summary()["likelihood"]["pairs"] > 0 for stage in more)
    rows = {r.strategy: r for r in with_all.results if r.seed == -1 and r.language == "pt"}
    assert set(names) - {"top-k+likelihood"} < rows.keys() and "top-50+likelihood" in rows
    assert "|stack:" in rows["top-50+likelihood"].signature
    seconds = {r.strategy: r.train_seconds for r in with_all.results if r.seed == 13}
    assert (seconds["english+likelihood"] or 0) > (seconds["translate-test+likelihood"] or 0) * 0.99
    assert list((run.folder / "features").glob("*.safetensors"))


def test_a_training_is_the_same_stage_with_and_without_a_model(
    small_run: Small, causal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before there was the setting, it goes on with it, and the plain evaluator has the same bytes."""
    values, model = small_run(), tmp_path / "model"
    shutil.copytree(causal, model)
    values["train"]["dimensions"] = {"sensibleness": {}}
    with monkeypatch.context() as patched:
        patched.setattr("mdialeval.train.evaluators.save_folder", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            api.train(values)
    told = {**values, "train": {**values["train"], "likelihood": str(model)}}
    api.train(told)
    run = Run(Path(values["runs"]) / "small")
    plain = next(s for s in run.finished("train") if "likelihood" not in s.settings)
    assert str(model) not in (plain.folder / "evaluator" / "evaluator.json").read_text()
    (plain.folder / "timing.json").unlink()
    more = next(s for s in run.finished("train") if "likelihood" in s.settings)
    shutil.rmtree(more.folder)
    api.train(told)
    assert training_seconds(more) is None
    with open(model / "generation_config.json", "a", encoding="utf-8") as stream:
        stream.write(" ")  # the model changes in place: what rests on it is made anew
    api.train(told)
    assert len([s for s in run.finished("train") if "likelihood" in s.settings]) == 2


def test_strategies_with_likelihood_are_named_and_refused() -> None:
    with pytest.raises(ValueError, match="did you mean 'english'"):
        BenchmarkConfig(strategies=["englsh+likelihood"])
    section = BenchmarkConfig(strategies=["english", "top-k+likelihood", "top-k"], k=[5.0])
    assert [cell.name for cell in cells(section, [])] == ["english", "top-5+likelihood", "top-5"]
    assert section.plain == ("english", "top-k")


def test_a_language_model_that_no_strategy_reads_is_warned_of(
    small_run: Small, causal: Path, caplog: pytest.LogCaptureFixture
) -> None:
    values = small_run(benchmark={"strategies": ["english"]})
    values["train"]["likelihood"] = str(causal)
    with caplog.at_level(logging.WARNING):
        check_strategies(api.read_config(values))
    assert "write english+likelihood" in caplog.text


def test_a_strategy_with_and_without_likelihoods_is_one_job(small_run: Small) -> None:
    names = ["english", "english+likelihood", "multilingual", "multilingual+likelihood"]
    config = api.read_config(small_run(benchmark={"strategies": names}))
    assert [len(job) for job in jobs(config, cells(config.benchmark, ["pt"]))] == [2, 2]
    plain, more = (cell_config(config, cell).train.likelihood for cell in cells(config.benchmark, ["pt"])[:2])
    assert (plain, more) == ("", "embedded")
