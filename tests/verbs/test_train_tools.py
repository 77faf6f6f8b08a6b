"""`train --find-rate`, `export` and evaluators of likelihoods, over a small run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from mdialeval import api
from mdialeval.errors import ConfigError
from mdialeval.records import Prediction
from mdialeval.store import Run

Small = Callable[..., dict[str, Any]]
CommandLine = Callable[..., tuple[int, str]]


def test_find_rate_prints_the_curve_and_trains_nothing(
    small_run: Small, tmp_path: Path, command_line: CommandLine
) -> None:
    path = tmp_path / "small.yaml"
    with path.open("w", encoding="utf-8") as stream:
        YAML().dump(json.loads(json.dumps(small_run())), stream)
    code, text = command_line("train", str(path), "--quiet", "--find-rate", "-s", "train.batch_size=8")
    assert code == 0, text
    run = tmp_path / "runs" / "small"
    for dimension in ("sensibleness", "understandability"):
        assert f"{dimension}: " in text
        curve = json.loads((run / f"rates-{dimension}.json").read_text())
        assert len(curve["rates"]) == len(curve["losses"]) > 15
        assert "<svg" in (run / f"rates-{dimension}.svg").read_text()
    assert not list(run.glob("train-*"))
    assert "suggestion: train.learning_rate=" in text or "never fell" in text


def test_find_rate_refuses_what_it_cannot_sweep(small_run: Small) -> None:
    section = small_run()["train"]
    with pytest.raises(ConfigError, match="reads text alone"):
        api.find_rates(small_run(train={**section, "graph": {"use": "joint"}}))
    with pytest.raises(ConfigError, match="needs training data"):
        api.find_rates({k: v for k, v in small_run().items() if k != "corpus"})


def test_export_from_the_command_line(small_run: Small, tmp_path: Path, command_line: CommandLine) -> None:
    values = small_run()
    values["train"]["dimensions"] = {"sensibleness": {}}
    outcome = api.train(values)
    folder, rated = outcome.stages[0].folder / "evaluator", tmp_path / "rated.jsonl"
    out = tmp_path / "plain"
    arguments = ("export", str(folder), "--to", "huggingface", "--output", str(out), "--rows", str(rated))
    code, text = command_line(*arguments)
    assert code == 0, text
    assert "largest difference of a score: 0.0e+00 on 24 rows (en, pt)" in text
    assert {"config.json", "model.safetensors", "evaluator.safetensors", "README.md"} <= {p.name for p in out.iterdir()}
    assert "| licence of the data | corpus: not stated |" in (out / "README.md").read_text()
    code, text = command_line("export", str(tmp_path), "--output", str(out))
    assert code == 3
    assert "no evaluator here" in text
    code, text = command_line("export", str(folder), "--to", "tf", "--output", str(out))
    assert code == 2


def test_a_dimension_may_read_likelihoods_once_for_all_its_recipes(small_run: Small, causal: Path) -> None:
    values = small_run()
    recipe = {"encoder": f"likelihood:{causal}"}
    values["train"]["dimensions"]["understandability"]["recipe"] = recipe
    found = api.run(values)
    scored = [p for stage in Run(found.run).finished("score") for p in stage.read(Prediction)]
    read = [p for p in scored if (p.scorer, p.dimension) == ("evaluator", "understandability")]
    assert len(read) == 24
    assert all(p.score is not None and 0 < p.score < 1 for p in read)
    kept = sorted(path.name for path in (found.run / "features").iterdir())
    assert kept
    recipe["head_learning_rate"] = 0.01
    api.train(values)
    assert sorted(path.name for path in (found.run / "features").iterdir()) == kept
