"""What the loop can do beside training: gradient checkpointing, TensorBoard, the search for a learning rate."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from mdialeval.config.train import TrainConfig
from mdialeval.errors import ConfigError, DataError, MissingExtraError
from mdialeval.records import TrainingPair, Turn
from mdialeval.train.evaluators import train_evaluator
from mdialeval.train.loop import log_path
from mdialeval.train.rate_finder import find_rate
from mdialeval.train.tensorboard import board_path


def some_pairs(groups: int = 10) -> list[TrainingPair]:
    """The good response repeats the context's word."""
    words = ["apple", "river", "stone", "cloud", "tiger", "music", "bread", "chair", "lemon", "snow"]
    return [
        TrainingPair(
            f"{g}-{k}", "en", (Turn(f"I like the {words[g]}."),), Turn(f"The {w} is nice."), label, "made", str(g)
        )
        for g in range(groups)
        for k, (w, label) in enumerate([(words[g], 1.0), (words[g - 3], 0.0), (words[g - 4], 0.0), (words[g], 1.0)])
    ]


def config(encoder: Path, **changes: object) -> TrainConfig:
    values = {
        "encoder": str(encoder), "batch_size": 8, "epochs": 2, "learning_rate": 1e-3, "precision": "fp32",
        "device": "cpu", "hidden": 16, "dev_share": 0.2, "checks": 2,
    }  # fmt: skip
    return TrainConfig.model_validate(values | changes)


@pytest.mark.parametrize("kind", ["bert", "xlm-roberta"])
def test_gradient_checkpointing_gives_the_same_losses_and_weights(
    make_encoder: Callable[..., Path], tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, calls = make_encoder(kind), []
    honest = torch.utils.checkpoint.checkpoint
    monkeypatch.setattr("transformers.modeling_utils.checkpoint", lambda *a, **k: calls.append(1) or honest(*a, **k))
    found = {}
    for on in (False, True):
        recipe = config(encoder, gradient_checkpointing=on, encoder_dropout=0.1)
        found[on] = train_evaluator(some_pairs(), "d", recipe, tmp_path / str(on), seed=1)
        assert bool(calls) == on, "layers are computed again only where asked for"
    assert found[True].history == found[False].history
    first, second = (load_file(tmp_path / str(on) / "evaluator.safetensors") for on in (False, True))
    assert all(torch.equal(first[k], second[k]) for k in first)
    cards = [(tmp_path / str(on) / "evaluator.json").read_bytes() for on in (False, True)]
    assert cards[0] == cards[1], "it is no part of what is learned"


def test_an_encoder_without_gradient_checkpointing_is_named(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transformers.BertModel.supports_gradient_checkpointing", False)
    with pytest.raises(ConfigError, match=r"gradient_checkpointing: bert encoders have none"):
        train_evaluator(some_pairs(), "d", config(tiny_encoder, gradient_checkpointing=True), tmp_path / "e", seed=1)


def test_tensorboard_holds_what_the_log_holds(tiny_encoder: Path, tmp_path: Path) -> None:
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    summary = train_evaluator(some_pairs(), "d", config(tiny_encoder, tensorboard=True), tmp_path / "e", seed=1)
    board = events.EventAccumulator(str(board_path(tmp_path / "e")))
    board.Reload()
    assert set(board.Tags()["scalars"]) == {
        "train/loss", "train/pairs_per_second",
        "dev/loss", "dev/auc", "dev/accuracy", "dev/spread", "dev/mean_loss", "dev/n",
    }  # fmt: skip
    written = [(e.step, e.value) for e in board.Scalars("dev/loss")]
    assert written == [(h["step"], pytest.approx(h["loss"])) for h in summary.history]
    lines = [json.loads(line) for line in log_path(tmp_path / "e").read_text().splitlines()]
    losses = [(line["step"], pytest.approx(line["loss"])) for line in lines if "statistic" not in line]
    assert [(e.step, e.value) for e in board.Scalars("train/loss")] == losses
    assert not any("tensorboard" in p.name or "tfevents" in p.name for p in (tmp_path / "e").iterdir())


def test_tensorboard_is_off_by_default_and_missing_is_an_instruction(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    train_evaluator(some_pairs(), "d", config(tiny_encoder, epochs=0.3, checks=1), tmp_path / "e", seed=1)
    assert not board_path(tmp_path / "e").exists()
    with pytest.raises(MissingExtraError, match=r"mdialeval\[tensorboard\]"):
        train_evaluator(some_pairs(), "d", config(tiny_encoder, tensorboard=True), tmp_path / "f", seed=1)


@pytest.mark.parametrize("changes", [{}, {"trainable_layers": 0}])
def test_the_rate_sweep_is_deterministic_and_suggests_a_rate_that_learns(
    tiny_encoder: Path, changes: dict[str, object]
) -> None:
    recipe = config(tiny_encoder, **changes)
    first, second = (find_rate(some_pairs(), recipe, seed=1, steps=60) for _ in range(2))
    assert first == second
    assert first.learning_rate is not None
    assert first.head_learning_rate is not None
    assert first.best is not None
    assert first.means[first.best] == min(first.means)
    assert 10 * first.learning_rate == pytest.approx(recipe.learning_rate * first.factors[first.best])
    assert first.head_learning_rate / first.learning_rate == pytest.approx(
        recipe.head_learning_rate / recipe.learning_rate
    )
    assert list(first.rates) == sorted(first.rates)
    base = recipe.head_learning_rate if changes else recipe.learning_rate
    assert first.rates[0] == pytest.approx(base / 100)


def test_a_sweep_that_learns_nothing_suggests_nothing(tiny_encoder: Path) -> None:
    still = config(tiny_encoder, learning_rate=1e-12, head_learning_rate=1e-12, dropout=0.0, batch_size=64)
    found = find_rate(some_pairs(), still, seed=1, steps=20)
    assert found.learning_rate is None
    assert "never fell" in found.reason
    with pytest.raises(DataError, match="one class only"):
        find_rate([p for p in some_pairs() if p.label], config(tiny_encoder), seed=1)
