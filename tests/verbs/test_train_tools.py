"""`train --find-rate` and `export` from the command line, over a small run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from mdialeval import api
from mdialeval.errors import ConfigError

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
