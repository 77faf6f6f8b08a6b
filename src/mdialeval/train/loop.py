"""The training loop: accelerate, warm-up and linear decay, dev selection, early stop, resume.

Order, dropout and everything else that is random depends only on (seed, step), never on how often a run was
interrupted; a step's loss is divided by the weight of all its pairs, so several processes follow one.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor

from mdialeval.config.train import TrainConfig
from mdialeval.errors import BackendError
from mdialeval.model.markup import Row
from mdialeval.model.network import EvaluatorNetwork, changed_state, trained_names
from mdialeval.train.checkpoint import (
    BEST,
    CHECKPOINT,
    Progress,
    load_checkpoint,
    read_tensors,
    save_checkpoint,
    write_tensors,
)
from mdialeval.train.dev import DevFigures
from mdialeval.train.passes import Data, Passes
from mdialeval.train.plan import epoch_batches
from mdialeval.train.tensorboard import board_path, open_board, write_board

log = logging.getLogger(__name__)

CHECKPOINT_SECONDS = 60.0


class Loop:
    """One training of one network.

    Args:
        accelerator: device, precision, processes.
        network: with gradients switched on where they are wanted.
        tokenizer: for its special tokens.
        config: the recipe.
        seed: of order and dropout.
        folder: where checkpoints and the log go.
        recipe: all that the result depends on; see ``checkpoint``.
    """

    def __init__(
        self,
        accelerator: Accelerator,
        network: EvaluatorNetwork,
        tokenizer: Any,
        config: TrainConfig,
        seed: int,
        folder: Path,
        recipe: dict[str, Any],
    ) -> None:
        self.accelerator, self.network = accelerator, network
        self.config, self.seed, self.folder, self.recipe = config, seed, folder, recipe
        self.trained = trained_names(network)
        frozen = not any(name.startswith("encoder.base.") for name in self.trained)
        self.passes = Passes(accelerator, network, tokenizer, config, seed, frozen)
        self._board = open_board(board_path(folder)) if config.tensorboard and accelerator.is_main_process else None
        self.speed = 0.0  # pairs per second, all processes together

    def run(self, train: Data, dev: Data, on_step: Callable[[int], None] | None = None) -> Progress:
        """Train until the last step or until patience ends; the network then holds the best weights.

        Args:
            on_step: called with the number of steps done, after each; what it raises ends the training.

        Raises:
            BackendError: a loss or score is not finite, or all predictions became the same.
            ResumeError: the folder holds an unfinished training with another recipe.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self.passes.prepare(train, dev)
        optimizer = torch.optim.AdamW(parameter_groups(self.network, self.config), fused=True)
        names: dict[Tensor, str] = {p: n for n, p in self.network.named_parameters() if n in self.trained}
        progress = load_checkpoint(self.folder, self.network, optimizer, names, self.recipe) or Progress(0, [], None, 0)
        if progress.step:
            log.info("resuming after step %d", progress.step)
        model, optimizer = self.accelerator.prepare(self.network, optimizer)
        plan = self._plan(train.rows)
        checks = {round(len(plan) * (i + 1) / self.config.checks) for i in range(self.config.checks)} - {0}

        def keep(state: Progress) -> None:
            if self.accelerator.is_main_process:
                inner = getattr(optimizer, "optimizer", optimizer)
                save_checkpoint(self.folder, self.network, inner, names, self.recipe, state)

        started = saved = time.monotonic()
        first, pairs = progress.step, 0
        for step in range(progress.step, len(plan)):
            if progress.stale >= self.config.patience:
                log.info("no better dev figure in %d checks: stopping", progress.stale)
                break
            factor = rate_factor(step, len(plan), self.config.warmup)
            for group in optimizer.param_groups:
                group["lr"] = group["initial_lr"] * factor
            loss = self.passes.update(model, optimizer, train, plan[step], step)
            progress = progress._replace(step=step + 1)
            pairs += sum(len(g) for batch in plan[step] for g in batch)
            now = time.monotonic()
            self.speed = pairs / max(now - started, 1e-9)
            self._report(step + 1, len(plan), loss, (now - started) / (step + 1 - first) * (len(plan) - step - 1))
            if step + 1 in checks:
                progress = self._check(dev, progress)
            if step + 1 in checks or now - saved > CHECKPOINT_SECONDS:
                keep(progress)
                saved = time.monotonic()
            if on_step is not None:
                on_step(step + 1)
        if self._board is not None:
            self._board.close()
        self.accelerator.wait_for_everyone()
        self._restore_best(progress)
        return progress

    def clear(self) -> None:
        """Delete the state of the finished training."""
        for name in (CHECKPOINT, BEST):
            (self.folder / name).unlink(missing_ok=True)

    def _plan(self, rows: Sequence[Row]) -> list[list[list[list[int]]]]:
        """All steps: each a list of ``accumulate`` batches of bundles."""
        config = self.config
        epochs = [
            epoch_batches(rows, self.seed, epoch, config.batch_size, self.passes.pack)
            for epoch in range(math.ceil(config.epochs))
        ]
        whole = math.floor(config.epochs)
        if whole < len(epochs):
            epochs[-1] = epochs[-1][: max(1, round((config.epochs - whole) * len(epochs[-1])))]
        flat = [batch for epoch in epochs for batch in epoch]
        return [flat[i : i + config.accumulate] for i in range(0, len(flat), config.accumulate)]

    def _check(self, dev: Data, progress: Progress) -> Progress:
        """Evaluate, keep the weights where they are the best so far, and guard against collapse."""
        figures = self.passes.evaluate(dev)
        record = {"step": progress.step, **figures._asdict()}
        log.info(
            "step %d: dev loss %.4f, %s %s, accuracy %s",
            *(progress.step, figures.loss, figures.statistic, figures.value, figures.accuracy),
        )
        self._log(record)
        history = [*progress.history, record]
        best = None if progress.best is None else progress.history[progress.best]
        before = None if best is None else DevFigures(**{k: v for k, v in best.items() if k != "step"})
        if figures.better_than(before):
            if self.accelerator.is_main_process:
                write_tensors(self.folder / BEST, changed_state(self.network, self.trained), record)
            return progress._replace(history=history, best=len(history) - 1, stale=0)
        if len(history) > 1 and all(h["reason"] == "constant predictions" for h in history[-2:]):
            raise _collapsed(figures)
        return progress._replace(history=history, stale=progress.stale + 1)

    def _restore_best(self, progress: Progress) -> None:
        if progress.best is None:
            figures = {k: v for k, v in progress.history[-1].items() if k != "step"}
            raise _collapsed(DevFigures(**figures))
        state, _ = read_tensors(self.folder / BEST)
        self.network.load_state_dict(state, strict=False)
        self.network.eval()

    def _report(self, step: int, total: int, loss: float, left: float) -> None:
        if step % 20 == 0 or step == total:
            log.info("step %d of %d: loss %.4f, %.0f pairs/s, %.0f s left", step, total, loss, self.speed, left)
            self._log({"step": step, "loss": loss, "pairs_per_second": round(self.speed, 1)})

    def _log(self, record: dict[str, Any]) -> None:
        if self.accelerator.is_main_process:
            with open(log_path(self.folder), "a", encoding="utf-8") as stream:
                stream.write(json.dumps(record) + "\n")
        if self._board is not None:
            write_board(self._board, record)


def log_path(folder: Path) -> Path:
    """The log, one JSON object a line: beside the folder, since it holds times and is no part of the result."""
    return folder.with_name(folder.name + ".log.jsonl")


def parameter_groups(network: EvaluatorNetwork, config: TrainConfig) -> list[dict[str, Any]]:
    """What learns, for an optimizer: encoder and head at their own rates; no decay on biases and norms."""
    groups: dict[tuple[float, float], list[torch.nn.Parameter]] = {}
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            rate = config.learning_rate if name.startswith("encoder.base.") else config.head_learning_rate
            groups.setdefault((rate, config.weight_decay if parameter.ndim > 1 else 0.0), []).append(parameter)
    return [
        {"params": params, "lr": rate, "initial_lr": rate, "weight_decay": decay}
        for (rate, decay), params in groups.items()
    ]


def rate_factor(step: int, total: int, warmup: float) -> float:
    """The share of the learning rate at a step: linear warm-up from above 0, then linear decay to 0.

    >>> [round(rate_factor(s, 10, 0.2), 2) for s in (0, 1, 2, 9)]
    [0.5, 1.0, 1.0, 0.12]
    """
    rising = max(1, round(total * warmup)) if warmup else 0
    if step < rising:
        return (step + 1) / rising
    return (total - step) / max(1, total - rising)


def _collapsed(figures: DevFigures) -> BackendError:
    return BackendError(
        "training",
        f"collapsed: {figures.reason or 'no usable check'} on {figures.n} dev pairs (spread {figures.spread:.2g}, loss "
        f"{figures.loss:.4f} against {figures.mean_loss:.4f} for always predicting the mean)",
        hint="use a smaller learning_rate or more warmup",
    )
