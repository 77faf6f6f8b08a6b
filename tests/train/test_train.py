"""Training: it learns, goes on where it was killed, refuses what it cannot learn from, and says when it fails."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from mdialeval.config.train import TrainConfig
from mdialeval.errors import BackendError, DataError, ResumeError
from mdialeval.model.batches import Batch
from mdialeval.model.evaluator import Evaluator
from mdialeval.model.network import EvaluatorNetwork
from mdialeval.records import Example, TrainingPair, Turn
from mdialeval.train.evaluators import train_evaluator
from mdialeval.train.loop import log_path
from mdialeval.train.plan import split_by_group


def some_pairs(groups: int = 12) -> list[TrainingPair]:
    """Pairs where the good response repeats the context's word and the bad one does not."""
    words = ["apple", "river", "stone", "cloud", "tiger", "music", "bread", "chair", "lemon", "snow", "horse", "train"]
    pairs = []
    for g in range(groups):
        word, other = words[g % len(words)], words[(g + 5) % len(words)]
        context = (Turn("Tell me more."), Turn(f"I like the {word}."))
        for label, said in ((1.0, word), (0.0, other)):
            for k, frame in enumerate(("Yes, the {} is nice.", "Why the {}?")):
                name = f"{g}-{label:g}-{k}"
                response = Turn(frame.format(said))
                pairs.append(TrainingPair(name, "en", context, response, label, "made", f"g{g}"))
    return pairs


def config(encoder: Path | str, **changes: object) -> TrainConfig:
    values = {
        "encoder": str(encoder),
        "batch_size": 4,
        "epochs": 2,
        "learning_rate": 1e-3,
        "head_learning_rate": 3e-3,
        "precision": "fp32",
        "device": "cpu",
        "hidden": 16,
        "dev_share": 0.2,
        "checks": 2,
    }
    return TrainConfig(**(values | changes))


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "evaluator.safetensors")


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


@pytest.mark.parametrize(
    "changes", [{}, {"layers": "several"}, {"trainable_layers": 0, "attention": "separate", "layers": "mix"}]
)
def test_overfits_eight_pairs(tiny_encoder: Path, tmp_path: Path, changes: dict[str, object]) -> None:
    pairs = some_pairs(3)
    recipe = config(
        tiny_encoder, epochs=60, dropout=0.0, checks=1, learning_rate=1e-3, head_learning_rate=2e-2, **changes
    )
    train_evaluator(pairs, "sensibleness", recipe, tmp_path / "e", seed=3)
    learned = split_by_group(pairs, recipe.dev_share, 3).train
    assert len(learned) == 8
    evaluator = Evaluator.from_pretrained(tmp_path / "e")
    predictions = evaluator.predict([Example(p.id, "en", p.context, p.response) for p in learned])
    scores = [(p.score or 0.0, pair.label) for p, pair in zip(predictions, learned, strict=True)]
    assert min(s for s, label in scores if label) > 0.8
    assert max(s for s, label in scores if not label) < 0.2


def test_killed_and_resumed_equals_unbroken(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdialeval.train.loop.CHECKPOINT_SECONDS", 0.0)
    recipe, pairs = config(tiny_encoder, checks=3), some_pairs()
    whole = train_evaluator(pairs, "d", recipe, tmp_path / "whole", seed=1)

    def stop(step: int) -> None:
        if step == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_evaluator(pairs, "d", recipe, tmp_path / "parts", seed=1, on_step=stop)
    assert (tmp_path / "parts" / "checkpoint.safetensors").exists()
    steps: list[int] = []
    parts = train_evaluator(pairs, "d", recipe, tmp_path / "parts", seed=1, on_step=steps.append)
    assert steps[0] == 6
    assert parts.history == whole.history
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "parts"))
    names = sorted(p.name for p in (tmp_path / "whole").iterdir())
    assert names == sorted(p.name for p in (tmp_path / "parts").iterdir())
    for name in names:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes(), name


def test_resume_with_another_recipe_names_the_difference(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdialeval.train.loop.CHECKPOINT_SECONDS", 0.0)

    def stop(step: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_evaluator(some_pairs(), "d", config(tiny_encoder), tmp_path / "e", seed=1, on_step=stop)
    with pytest.raises(ResumeError, match=r"config\.learning_rate was 0\.001 and is 0\.002.*seed was 1 and is 2"):
        train_evaluator(some_pairs(), "d", config(tiny_encoder, learning_rate=2e-3), tmp_path / "e", seed=2)


def test_a_checkpoint_of_another_encoder_or_a_damaged_one_is_refused(
    make_encoder: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdialeval.train.loop.CHECKPOINT_SECONDS", 0.0)

    def stop(step: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_evaluator(some_pairs(), "d", config(make_encoder("bert")), tmp_path / "e", seed=1, on_step=stop)
    with pytest.raises(ResumeError, match=r"encoder was [0-9a-f]{16} and is [0-9a-f]{16}.*delete the folder"):
        train_evaluator(some_pairs(), "d", config(make_encoder("bert", seed=9)), tmp_path / "e", seed=1)
    checkpoint = tmp_path / "e" / "checkpoint.safetensors"
    checkpoint.write_bytes(checkpoint.read_bytes()[:5000])
    with pytest.raises(ResumeError, match="cannot be read"):
        train_evaluator(some_pairs(), "d", config(make_encoder("bert")), tmp_path / "e", seed=1)


def test_one_class_is_refused(tiny_encoder: Path, tmp_path: Path) -> None:
    pairs = [p for p in some_pairs() if p.label == 1.0]
    with pytest.raises(DataError, match="one class only"):
        train_evaluator(pairs, "d", config(tiny_encoder), tmp_path / "e", seed=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda ps: [], "no training pairs"),
        (lambda ps: [dataclasses.replace(ps[0], label=3.0), *ps[1:]], r"label 3.0; labels lie in \[0, 1\]"),
        (lambda ps: [*ps, ps[0]], "ids must be unique"),
        (lambda ps: [dataclasses.replace(p, group="one") for p in ps], "at least 2"),
        (lambda ps: [dataclasses.replace(ps[0], response=Turn("  ")), *ps[1:]], "empty response"),
    ],
)
def test_bad_data_is_refused(tiny_encoder: Path, tmp_path: Path, change: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        train_evaluator(change(some_pairs()), "d", config(tiny_encoder), tmp_path / "e", seed=1)  # type: ignore[operator]


def test_non_finite_loss_stops_with_step_and_ids(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = EvaluatorNetwork.losses

    def broken(self: EvaluatorNetwork, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        found = honest(self, outputs, labels)
        return torch.where(torch.arange(len(found)) == 0, torch.nan, found) if self.training else found

    monkeypatch.setattr(EvaluatorNetwork, "losses", broken)
    with pytest.raises(BackendError, match=r"loss of step 1 is not finite for the pairs \d+-[01]-[01]"):
        train_evaluator(some_pairs(), "d", config(tiny_encoder), tmp_path / "e", seed=1)


def test_constant_predictions_are_a_collapse_not_a_result(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EvaluatorNetwork, "to_scores", lambda self, outputs: torch.full_like(outputs, 0.5))
    with pytest.raises(BackendError, match=r"collapsed: constant predictions"):
        train_evaluator(some_pairs(), "d", config(tiny_encoder), tmp_path / "e", seed=1)
    assert not (tmp_path / "e" / "evaluator.json").exists()


def test_early_stop_and_log(tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = train_evaluator(
        some_pairs(), "d", config(tiny_encoder, learning_rate=1e-9, head_learning_rate=1e-9, checks=8, patience=1),
        tmp_path / "e", seed=1,
    )  # fmt: skip
    full = 2 * len(some_pairs()) * 0.8 / 4
    assert summary.steps < full
    rows = [json.loads(line) for line in log_path(tmp_path / "e").read_text().splitlines()]
    assert [r["step"] for r in rows if "auc" in str(r)] == [h["step"] for h in summary.history]


def test_summary_counts_dropped_turns(tiny_encoder: Path, tmp_path: Path) -> None:
    long = [dataclasses.replace(p, context=(Turn("word " * 30),) * 3 + p.context) for p in some_pairs()]
    summary = train_evaluator(long, "d", config(tiny_encoder, max_tokens=64, epochs=0.3), tmp_path / "e", seed=1)
    assert summary.n_turns_dropped >= 3 * summary.n_train
    card = (tmp_path / "e" / "README.md").read_text()
    assert f"{summary.n_turns_dropped} context turns dropped" in card


def tight_memory(
    monkeypatch: pytest.MonkeyPatch, rows: int, error: BaseException, training: bool | None = None
) -> list[int]:
    """A network that runs out of memory above some rows; the sizes that were asked for."""
    honest, asked = EvaluatorNetwork.forward, []

    def small(self: EvaluatorNetwork, inputs: Batch, *rest: Any, **more: Any) -> Any:
        n = len(inputs) if isinstance(inputs, torch.Tensor) else len(inputs.rows)
        asked.append(n)
        if n > rows and (training is None or training == self.training):
            raise error
        return honest(self, inputs, *rest, **more)

    monkeypatch.setattr(EvaluatorNetwork, "forward", small)
    return asked


OUT_OF_MEMORY = [
    MemoryError(),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB"),
    RuntimeError(
        "[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 GB"
    ),
]


@pytest.mark.parametrize("error", OUT_OF_MEMORY, ids=["python", "cuda", "cpu"])
@pytest.mark.parametrize(
    ("changes", "rows"), [({}, 8), ({"pack": 8}, 1), ({"trainable_layers": 0}, 3), ({"ranking": 1.0}, 2)]
)
def test_out_of_memory_halves_the_batch_and_gives_the_same_step(
    tiny_encoder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: BaseException,
    changes: dict[str, Any],
    rows: int,
) -> None:
    recipe = config(
        tiny_encoder,
        **{"batch_size": 16, "pack": 2, "dropout": 0.0, "epochs": 1, "checks": 1, "balance": True, **changes},
    )
    if changes.get("ranking"):
        recipe = recipe.model_copy(update={"batch_size": 2})  # the ranking loss is a mean over what is in a batch
    train_evaluator(some_pairs(), "d", recipe, tmp_path / "roomy", seed=1)
    tight_memory(monkeypatch, rows, error, training=True)
    train_evaluator(some_pairs(), "d", recipe, tmp_path / "tight", seed=1)
    if not changes.get("ranking"):
        assert sum("out of memory" in record.message for record in caplog.records) == 1
    first, second = weights(tmp_path / "roomy"), weights(tmp_path / "tight")
    assert all(torch.allclose(first[k], second[k], atol=1e-5) for k in first)


def test_checks_on_dev_pairs_fit_into_memory_too(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    recipe = config(tiny_encoder, dropout=0.0, epochs=1)
    roomy = train_evaluator(some_pairs(), "d", recipe, tmp_path / "roomy", seed=1)
    asked = tight_memory(monkeypatch, 2, OUT_OF_MEMORY[1], training=False)
    tight = train_evaluator(some_pairs(), "d", recipe, tmp_path / "tight", seed=1)
    assert tight.dev["loss"] == pytest.approx(roomy.dev["loss"], abs=1e-6)
    assert max(asked) > 2
    assert sum("out of memory" in record.message for record in caplog.records) == 1


def test_a_single_pair_that_does_not_fit_is_an_error_with_the_way_out(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tight_memory(monkeypatch, 0, OUT_OF_MEMORY[1], training=True)
    with pytest.raises(BackendError, match=r"out of memory with a single pair at step 1.*gradient_checkpointing"):
        train_evaluator(some_pairs(), "d", config(tiny_encoder), tmp_path / "e", seed=1)


def test_another_runtime_error_passes_through(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tight_memory(monkeypatch, 0, RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        train_evaluator(some_pairs(), "d", config(tiny_encoder), tmp_path / "e", seed=1)


def test_scoring_out_of_memory_halves_its_batch(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    train_evaluator(some_pairs(), "d", config(tiny_encoder, epochs=0.2, checks=1), tmp_path / "e", seed=1)
    evaluator = Evaluator.from_pretrained(tmp_path / "e", precision="fp32")
    items = [Example(p.id, "en", p.context, p.response) for p in some_pairs()]
    roomy = [p.score for p in evaluator.predict(items)]
    asked = tight_memory(monkeypatch, 5, OUT_OF_MEMORY[1])
    tight = [p.score for p in evaluator.predict(items)]
    assert tight == pytest.approx(roomy, abs=1e-6)
    asked.clear()
    evaluator.predict(items)
    assert max(asked) <= 5, "what does not fit is not tried again"
    assert sum("out of memory" in record.message for record in caplog.records) == 1
    tight_memory(monkeypatch, 0, OUT_OF_MEMORY[1])
    with pytest.raises(BackendError, match="single row"):
        evaluator.predict(items)
