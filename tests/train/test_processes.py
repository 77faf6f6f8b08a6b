"""Two processes train and evaluate as one does: rows are counted once, whatever the number of processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from mdialeval.records import TrainingPair, Turn
from mdialeval.tables import write_parquet
from mdialeval.train.dev import dev_figures

SCRIPT = Path(__file__).with_name("two_processes.py")


def test_rows_that_come_back_twice_count_once() -> None:
    """Ten rows, three processes, batches of two: the last batches are filled up with repeats."""
    labels = [0.0, 1.0] * 5
    scores = [0.1 * i for i in range(10)]
    ids = [*range(10), 0, 1]
    twice = dev_figures(ids, [scores[i] for i in ids], [scores[i] for i in ids], labels, "bce")
    once = dev_figures(range(10), scores, scores, labels, "bce")
    assert twice == once
    assert once.n == 10
    with pytest.raises(RuntimeError, match="9 of 10"):
        dev_figures(range(9), scores[:9], scores[:9], labels, "bce")


def test_two_processes_equal_one(tiny_encoder: Path, tmp_path: Path) -> None:
    words = ["apple", "river", "stone", "cloud", "tiger", "music", "bread", "chair"]
    pairs = [
        TrainingPair(f"{g}-{k}", "en", (Turn(f"I like the {w}."),), Turn(f"The {x} is nice {k}."), label, "made", w)
        for g, w in enumerate(words)
        for k, (x, label) in enumerate([(w, 1.0), (words[g - 3], 0.0), (w, 1.0)])
    ]
    write_parquet(tmp_path / "pairs.parquet", pairs, TrainingPair)
    settings = {
        "encoder": str(tiny_encoder), "batch_size": 5, "epochs": 2, "learning_rate": 1e-3, "hidden": 8, "dropout": 0,
        "precision": "fp32", "device": "cpu", "dev_share": 0.3, "checks": 2, "pack": 2,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(settings))
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "true"}
    arguments = [str(SCRIPT), str(tmp_path / "config.json"), str(tmp_path / "pairs.parquet")]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    for command, name in (([sys.executable], "one"), (launcher, "two")):
        done = subprocess.run(
            [*command, *arguments, str(tmp_path / name)], env=environment, capture_output=True, text=True, timeout=200
        )
        assert done.returncode == 0, done.stderr[-3000:]
    one, two = (
        json.loads((tmp_path / name / "evaluator.json").read_text())["training"]["dev"] for name in ("one", "two")
    )
    assert one["n"] == two["n"]
    assert one["value"] == two["value"]
    assert one["loss"] == pytest.approx(two["loss"], abs=1e-6)
    figures = [
        (tmp_path / name).read_text()
        for name in ("one/untrained-0.json", "two/untrained-0.json", "two/untrained-1.json")
    ]
    assert len(set(figures)) == 1, "gathered figures agree to the last digit, on every process"
    first, second = (load_file(tmp_path / name / "evaluator.safetensors") for name in ("one", "two"))
    assert all(torch.allclose(first[k], second[k], atol=1e-5) for k in first)
