"""Fusion from YAML: in the judge's prompt, and as a weighted score fitted on other dialogues than it is checked on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mdialeval import api
from mdialeval.errors import ConfigError
from mdialeval.records import Agreement, Prediction
from mdialeval.store import Run, Stage
from mdialeval.verbs.fuse import split

GROUPS = 40


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    """Two noisy scorers and a constant one, on 40 dialogues in two languages."""
    random = np.random.default_rng(4)
    rows, scores = [], []
    for i in range(GROUPS * 2):
        rating = float(random.integers(1, 6))
        for language in ("en", "pt"):
            row = {"id": f"e{i}", "language": language, "context": ["The cat sleeps."], "response": f"It rests {i}."}
            rows.append(row | {"ratings": {"quality": rating}, "group": f"d{i // 2}", "source_id": f"e{i}"})
            for name in ("one", "two"):
                score = min(1.0, max(0.0, (rating + 1.5 * random.normal()) / 6))
                scores.append((name, {"id": f"e{i}", "language": language, "score": score}))
            scores.append(("flat", {"id": f"e{i}", "language": language, "score": 0.5}))
    (tmp_path / "rated.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    scorers = []
    for name in ("one", "two", "flat"):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("\n".join(json.dumps(row) for n, row in scores if n == name), encoding="utf-8")
        scorers.append({"name": name, "scorer": "given", "options": {"path": str(path), "dimension": "good"}})
    return {
        "run": "fused",
        "runs": str(tmp_path / "runs"),
        "score": {"sets": [{"name": "rated", "path": str(tmp_path / "rated.jsonl")}], "scorers": scorers},
        "correlate": {"resamples": 20, "statistics": ["spearman"]},
    }


def with_fuse(config: dict[str, Any], **options: Any) -> dict[str, Any]:
    return {**config, "score": {**config["score"], "fuse": [options]}}


def fused_stage(config: dict[str, Any]) -> Stage:
    (stage,) = Run(Path(config["runs"]) / config["run"]).finished("fuse")
    return stage


def test_a_fused_score_beats_its_members_on_dialogues_it_was_not_fitted_on(config: dict[str, Any]) -> None:
    outcome = api.run(with_fuse(config, name="joined"))
    rows: dict[tuple[str, str], Agreement] = {
        (a.dataset, a.scorer): a for a in api.rows(outcome.stages[0]) if a.language == "mean"
    }
    whole, held = "rated", "rated, held out for joined"
    assert {scorer for dataset, scorer in rows if dataset == whole} == {"one", "two", "flat"}
    assert rows[held, "joined"].value > max(rows[held, "one"].value or 0, rows[held, "two"].value or 0)  # type: ignore[operator]
    assert rows[held, "joined"].n == rows[held, "one"].n == 2 * GROUPS == rows[whole, "one"].n // 2
    assert rows[held, "joined"].n_scored == rows[held, "joined"].n
    page = outcome.report.read_text(encoding="utf-8")  # type: ignore[union-attr]
    assert held in page and "one good" in page and "nothing was fitted on" in page


def test_no_dialogue_is_on_both_sides_and_the_weights_ignore_the_held_out_ratings(
    config: dict[str, Any], tmp_path: Path
) -> None:
    api.score(with_fuse(config, name="joined"))
    summary = fused_stage(config).summary()
    dev = set(summary["dev_groups"])
    assert len(dev) == GROUPS // 2 and summary["dev_rows"] + summary["held_out_rows"] == 4 * GROUPS
    predictions = list(fused_stage(config).read(Prediction))
    assert {f"d{int(p.example_id[1:]) // 2}" for p in predictions}.isdisjoint(dev)
    assert {p.language for p in predictions} == {"en", "pt"} and all(p.dimension == "quality" for p in predictions)
    weights = summary["weights"]["quality"]
    assert weights["flat good"]["weight"] == 0 and weights["flat good"]["reason"] == "constant predictions"
    assert weights["one good"]["weight"] + weights["two good"]["weight"] == pytest.approx(1.0)
    rows = [json.loads(line) for line in (tmp_path / "rated.jsonl").read_text(encoding="utf-8").splitlines()]
    for row in rows:
        if row["group"] not in dev:
            row["ratings"]["quality"] = 6 - row["ratings"]["quality"]
    (tmp_path / "rated.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    turned = {**config, "runs": str(tmp_path / "turned")}
    api.score(with_fuse(turned, name="joined"))
    assert fused_stage(turned).summary()["weights"] == summary["weights"]


def test_members_are_chosen_and_a_second_run_fits_nothing_again(config: dict[str, Any]) -> None:
    chosen = with_fuse(config, name="joined", members=["one", "flat"], dev_share=0.25)
    outcome = api.score(chosen)
    assert [stage.verb for stage in outcome.stages] == ["score", "score", "score", "fuse"]
    stage = fused_stage(config)
    assert set(stage.summary()["weights"]["quality"]) == {"one good", "flat good"}
    assert len(stage.summary()["dev_groups"]) == GROUPS // 4
    before = stage.shard(0).stat().st_mtime_ns
    api.run(chosen)
    assert fused_stage(config).shard(0).stat().st_mtime_ns == before


def test_what_cannot_be_fitted_is_said_and_the_run_goes_on(config: dict[str, Any]) -> None:
    outcome = api.run(with_fuse(config, name="joined", members=["flat"]))
    assert fused_stage(config).summary()["rows"] == 0
    assert "no fused score for quality" in outcome.report.read_text(encoding="utf-8")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"members": ["oen"]}, "did you mean 'one'"),
        ({"name": "two"}, "already"),
        ({"may_be_negative": ["three"]}, "no scorer 'three'"),
        ({"dev_share": 1.0}, "less than 1"),
    ],
)
def test_mistakes_name_the_way_out(config: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        api.score(with_fuse(config, **options))
    assert not list(Path(config["runs"]).glob("*/score-*")), "before anything is scored"


def test_a_split_leaves_something_on_both_sides() -> None:
    assert len(split(["a", "b"], 0.01, 1)) == len(split(["a", "b"], 0.99, 1)) == 1
    assert split(["a"], 0.5, 1) == frozenset()
    assert split(map(str, range(50)), 0.5, 1) != split(map(str, range(50)), 0.5, 2)


def judge(**options: Any) -> dict[str, Any]:
    return {"name": "judge", "scorer": "llm", "options": {"backend": "dummy", "criteria": ["sensibleness"], **options}}


@pytest.mark.parametrize("evaluator", [False, True])
@pytest.mark.parametrize("graph", ["", "penman", "linearised"])
def test_evaluator_and_graph_of_the_run_are_switches_of_the_prompt(
    config: dict[str, Any], tmp_path: Path, evaluator: bool, graph: str
) -> None:
    options: dict[str, Any] = {"evaluator": "one"} if evaluator else {}
    options |= {"graphs": "parse", "graph_format": graph} if graph else {}
    values = {**config, "parse": {"parser": "dummy"}}
    values["score"] = {**config["score"], "scorers": [*config["score"]["scorers"], judge(**options)]}
    rows = list(api.rows(api.score(values).stages[-1]))
    blocks = ",".join(name for name, on in (("evaluator", evaluator), ("graph", graph)) if on)
    assert {p.detail.get("blocks", "") for p in rows} == {blocks}, (
        "in both languages: graphs are those of the English side"
    )
    lines = (tmp_path / "runs" / "llm-replies.jsonl").read_text(encoding="utf-8").splitlines()
    asked = {line["example_id"]: line["request"]["user"] for line in map(json.loads, lines) if line["language"] == "en"}
    score = next(
        row["score"]
        for row in map(json.loads, (tmp_path / "one.jsonl").read_text(encoding="utf-8").splitlines())
        if (row["id"], row["language"]) == ("e3", "en")
    )
    assert (f"{score:.2f}" in asked["e3"]) == evaluator
    inside = asked["e3"].partition("<graph>\n")[2].partition("\n</graph>")[0]
    assert bool(inside) == bool(graph)
    if graph:
        assert (" / " in inside) == (graph == "penman")


def test_a_judge_must_come_after_what_it_is_told(config: dict[str, Any]) -> None:
    values = {**config, "score": {**config["score"], "scorers": [judge(evaluator="one"), *config["score"]["scorers"]]}}
    with pytest.raises(ConfigError, match="move it up"):
        api.score(values)


def test_the_estimate_says_what_it_leaves_out(config: dict[str, Any]) -> None:
    scorers = [*config["score"]["scorers"], judge(evaluator="one", graphs="parse")]
    (line,) = api.estimate_score({**config, "score": {**config["score"], "scorers": scorers}})
    assert "160 calls" in line and "without the blocks that this run makes: evaluator, graphs" in line


def test_a_mean_of_scorers_needs_no_part_to_fit_on(config: dict[str, Any]) -> None:
    config["score"]["average"] = [{"name": "both", "members": ["one", "two"]}]
    outcome = api.run(config)
    rows = {a.scorer: a for a in api.rows(outcome.stages[0]) if a.language == "mean"}
    assert rows["both"].value > max(rows["one"].value, rows["two"].value)
    assert rows["both"].n == rows["both"].n_scored == rows["one"].n
    page = outcome.report.read_text(encoding="utf-8")  # type: ignore[union-attr]
    assert "mean of ranks" in page
    (stage,) = Run(Path(config["runs"]) / config["run"]).finished("average")
    assert stage.summary()["coverage"] == {"good en": "80 of 80", "good pt": "80 of 80"}


def test_a_mean_of_what_is_not_there_is_refused_before_scoring(config: dict[str, Any]) -> None:
    config["score"]["average"] = [{"name": "one", "members": ["one", "tow"]}]
    with pytest.raises(ConfigError) as caught:
        api.score(config)
    assert "another name" in str(caught.value) and "'tow'" in str(caught.value) and "two" in str(caught.value)


@pytest.mark.parametrize(
    ("score", "message"),
    [
        ({"average": [{"name": "m", "members": ["one", "evaluatr"]}]}, "did you mean 'evaluator'"),
        ({"average": [{"name": "m", "members": ["one", "one"]}]}, "'one' is there twice"),
        ({"fuse": [{"name": "one", "members": ["two", "flat"]}]}, "another name"),
        ({"scorers": [{"scorer": "length"}, {"scorer": "length"}]}, "two scorers have one name"),
        ({"scorers": [{"scorer": "length", "options": {"directoin": 1}}]}, "did you mean 'direction'"),
        ({"scorers": [{"scorer": "likelihood", "options": {"normalise": "words"}}]}, "use none or tokens"),
    ],
)
def test_wrong_names_are_found_before_anything_is_trained(
    config: dict[str, Any], score: dict[str, Any], message: str, tmp_path: Path
) -> None:
    values = {**config, "corpus": {"path": str(tmp_path / "rated.jsonl")}, "score": {**config["score"], **score}}
    verbs = [api.check, api.run, api.benchmark]
    for verb in verbs if "scorers" in score else [*verbs, api.score]:
        with pytest.raises(ConfigError, match=message):
            verb(values)
    assert not list(Path(config["runs"]).glob("*/*")), "before anything is read"


def test_members_may_be_strategies_where_only_a_benchmark_is_meant(config: dict[str, Any], tmp_path: Path) -> None:
    values = {**config, "corpus": {"path": str(tmp_path / "rated.jsonl")}}
    values["score"] = {**config["score"], "average": [{"name": "m", "members": ["one", "top-5"]}]}
    assert api.check(values)
    with pytest.raises(ConfigError, match="no scorer 'top-5'"):
        api.run(values)


def test_a_mean_follows_its_members_and_is_not_made_twice(config: dict[str, Any], tmp_path: Path) -> None:
    config["score"]["average"] = [{"name": "both", "members": ["one", "two"]}]
    api.score(config)
    (stage,) = Run(Path(config["runs"]) / config["run"]).finished("average")
    before = stage.shard(0).stat().st_mtime_ns
    (stage.folder / "manifest.json").unlink()  # killed before its end
    api.score(config)
    again = stage.shard(0).stat().st_mtime_ns
    api.score(config)
    assert before != again == stage.shard(0).stat().st_mtime_ns
    (tmp_path / "two.jsonl").write_text((tmp_path / "flat.jsonl").read_text(encoding="utf-8"), encoding="utf-8")
    api.score(config)
    assert len(Run(Path(config["runs"]) / config["run"]).finished("average")) == 2


def test_a_slow_scorer_can_be_kept_to_some_data_sets_and_what_it_joins_with_it(config: dict[str, Any]) -> None:
    path = config["score"]["sets"][0]["path"]
    config["score"]["sets"].append({"name": "other", "path": path})
    config["score"]["scorers"][1]["sets"] = ["rated"]
    config["score"]["average"] = [{"name": "both", "members": ["one", "two"]}]
    config["score"]["fuse"] = [{"name": "joined", "members": ["one", "two"]}, {"name": "alone", "members": ["one"]}]
    rows = list(api.rows(api.run(config).stages[0]))
    seen = {(a.dataset, a.scorer) for a in rows}
    assert {s for d, s in seen if d == "rated"} == {"one", "two", "flat", "both"}
    assert {s for d, s in seen if d == "other"} == {"one", "flat"}
    assert {d for d, _ in seen if "held out" in d} == {
        "rated, held out for joined", "rated, held out for alone", "other, held out for alone"
    }  # fmt: skip
    config["score"]["scorers"][1]["sets"] = ["ratde"]
    with pytest.raises(ConfigError, match="'two': no data set 'ratde': did you mean 'rated'"):
        api.score(config)
