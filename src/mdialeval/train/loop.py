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
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from torch import Tensor

from mdialeval.config.train import TrainConfig
from mdialeval.errors import BackendError
from mdialeval.model.batches import Batch, batches_by_length, bundles, collate
from mdialeval.model.markup import Row
from mdialeval.model.network import EvaluatorNetwork, changed_state, trained_names
from mdialeval.tasks.draws import draw
from mdialeval.train.checkpoint import (
    BEST,
    CHECKPOINT,
    Progress,
    load_checkpoint,
    read_tensors,
    save_checkpoint,
    write_tensors,
)
from mdialeval.train.dev import DevFigures, dev_figures
from mdialeval.train.plan import epoch_batches

log = logging.getLogger(__name__)

CHECKPOINT_SECONDS = 60.0
FIT_SAMPLE = 512  # pairs whose vectors set the head's mean and spread


class Data:
    """Encoded pairs with labels and weights, and the sentence features where the encoder is frozen.

    Args:
        rows: token ids.
        ids: the pairs' ids, for messages.
        labels: in [0, 1].
        weights: of each pair in the loss.
    """

    def __init__(self, rows: Sequence[Row], ids: Sequence[str], labels: Sequence[float], balance: bool) -> None:
        self.rows, self.ids = rows, ids
        self.labels = torch.tensor(labels, dtype=torch.float32)
        self.weights = _class_weights(self.labels) if balance else torch.ones(len(rows))
        self.pooled: Tensor | None = None


def _class_weights(labels: Tensor) -> Tensor:
    """Weights that give both sides of .5 the same sum; their mean is 1."""
    positive = labels > 0.5
    n, n_positive = len(labels), int(positive.sum())
    if n_positive in (0, n):
        return torch.ones(n)
    return torch.where(positive, n / (2 * n_positive), n / (2 * (n - n_positive)))


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
        self.accelerator, self.network, self.tokenizer = accelerator, network, tokenizer
        self.config, self.seed, self.folder, self.recipe = config, seed, folder, recipe
        self.trained = trained_names(network)
        self.frozen = not any(name.startswith("encoder.base.") for name in self.trained)
        self.pack = 1 if network.architecture.attention == "joint" else config.pack
        self.speed = 0.0  # pairs per second, all processes together

    def run(self, train: Data, dev: Data, on_step: Callable[[int], None] | None = None) -> Progress:
        """Train until the last step or until patience ends; the network then holds the best weights.

        Args:
            on_step: called with the number of steps done, after each; what it raises ends the training, whose state
                is kept where that is a KeyboardInterrupt.

        Raises:
            BackendError: a loss or score is not finite, or all predictions became the same.
            ResumeError: the folder holds an unfinished training with another recipe.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self.network.to(self.accelerator.device)
        if self.frozen:
            train.pooled, dev.pooled = self._pool(train.rows), self._pool(dev.rows)
        self._fit_head(train)
        optimizer = torch.optim.AdamW(self._parameter_groups())
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
        try:
            for step in range(progress.step, len(plan)):
                loss = self._step(model, optimizer, train, plan[step], step, len(plan))
                pairs += sum(len(g) for batch in plan[step] for g in batch)
                progress = progress._replace(step=step + 1)
                now = time.monotonic()
                self.speed = pairs / max(now - started, 1e-9)
                left = (now - started) / (step + 1 - first) * (len(plan) - step - 1)
                self._report(step + 1, len(plan), loss, left)
                if step + 1 in checks:
                    progress = self._check(dev, progress)
                    keep(progress)
                    saved = time.monotonic()
                    if progress.stale >= self.config.patience:
                        log.info("no better dev figure in %d checks: stopping", progress.stale)
                        break
                elif now - saved > CHECKPOINT_SECONDS:
                    keep(progress)
                    saved = now
                if on_step is not None:
                    on_step(step + 1)
        except KeyboardInterrupt:
            keep(progress)
            raise
        self.accelerator.wait_for_everyone()
        self._restore_best(progress)
        return progress

    def clear(self) -> None:
        """Delete the state of the finished training."""
        for name in (CHECKPOINT, BEST):
            (self.folder / name).unlink(missing_ok=True)

    def evaluate(self, data: Data) -> DevFigures:
        """Figures on held-out pairs; every process takes its share and all get the same answer."""
        config, world, rank = self.config, self.accelerator.num_processes, self.accelerator.process_index
        groups = bundles(data.rows, range(len(data.rows)), self.pack)
        found: list[tuple[int, float, float]] = []
        self.network.eval()
        with torch.inference_mode():
            for part in batches_by_length(data.rows, groups, 2 * config.batch_size)[rank::world]:
                inputs, rows = self._inputs(data, part)
                with self.accelerator.autocast():
                    outputs = self.network(inputs)
                outputs = outputs.float()
                losses = self.network.losses(outputs, data.labels[rows].to(outputs.device))
                scores = self.network.to_scores(outputs)
                found += zip(rows.tolist(), scores.double().tolist(), losses.double().tolist(), strict=True)
        if world > 1:
            found = gather_object(found)
        for row, score, loss in found:
            if not (math.isfinite(score) and math.isfinite(loss)):
                raise _not_finite(f"the prediction for dev pair {data.ids[row]!r} is {score} (loss {loss})")
        rows_found, scores_found, losses_found = zip(*found, strict=True)
        return dev_figures(rows_found, scores_found, losses_found, data.labels.tolist(), config.loss)

    def _plan(self, rows: Sequence[Row]) -> list[list[list[list[int]]]]:
        """All steps: each a list of ``accumulate`` batches of bundles."""
        config = self.config
        epochs = [
            epoch_batches(rows, self.seed, epoch, config.batch_size, self.pack)
            for epoch in range(math.ceil(config.epochs))
        ]
        whole = math.floor(config.epochs)
        if whole < len(epochs):
            epochs[-1] = epochs[-1][: max(1, round((config.epochs - whole) * len(epochs[-1])))]
        flat = [batch for epoch in epochs for batch in epoch]
        return [flat[i : i + config.accumulate] for i in range(0, len(flat), config.accumulate)]

    def _step(
        self,
        model: Any,
        optimizer: Any,
        data: Data,
        batches: list[list[list[int]]],
        step: int,
        total: int,
    ) -> float:
        """One update; the mean loss of its pairs on this process."""
        world, rank = self.accelerator.num_processes, self.accelerator.process_index
        factor = rate_factor(step, total, self.config.warmup)
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"] * factor
        torch.manual_seed(draw(self.seed, "dropout", step, rank).getrandbits(62))
        model.train()
        if self.frozen:
            self.network.encoder.base.eval()
        weight = sum(float(data.weights[i]) for batch in batches for group in batch for i in group)
        shown = 0.0
        for k, batch in enumerate(batches):
            mine = batch[rank::world]
            inputs, rows = self._inputs(data, mine or batch[:1])  # a process without a share still takes part
            last = k == len(batches) - 1
            with nullcontext() if last else self.accelerator.no_sync(model):
                with self.accelerator.autocast():
                    outputs = model(inputs)
                outputs = outputs.float()
                labels = data.labels[rows].to(outputs.device)
                weights = data.weights[rows].to(outputs.device)
                losses = self.network.losses(outputs, labels)
                if not bool(torch.isfinite(losses).all()):
                    bad = [data.ids[i] for i in rows[~torch.isfinite(losses).cpu()].tolist()]
                    raise _not_finite(f"the loss of step {step + 1} is not finite for the pairs {', '.join(bad[:5])}")
                loss = (weights * losses).sum()
                if self.config.ranking:
                    sequence = _sequence_of(mine or batch[:1]).to(outputs.device)
                    loss = loss + self.config.ranking * weights.sum() * ranking_loss(outputs, labels, sequence)
                if not mine:
                    loss = loss * 0.0
                self.accelerator.backward(loss * world / weight)
                shown += float(loss.detach()) / weight * world
        self.accelerator.clip_grad_norm_([p for g in optimizer.param_groups for p in g["params"]], self.config.clip)
        optimizer.step()
        optimizer.zero_grad()
        return shown

    def _inputs(self, data: Data, groups: Sequence[Sequence[int]]) -> tuple[Batch | Tensor, Tensor]:
        """What the network takes, and which row each of its outputs belongs to."""
        if data.pooled is not None:
            rows = torch.tensor([i for group in groups for i in group])
            return data.pooled[rows].to(self.accelerator.device), rows
        batch = self._collate(data.rows, groups)
        return batch.to(self.accelerator.device), batch.rows

    def _collate(self, rows: Sequence[Row], groups: Sequence[Sequence[int]]) -> Batch:
        tokenizer = self.tokenizer
        attention = self.network.architecture.attention
        return collate(rows, groups, tokenizer.cls_token_id, tokenizer.pad_token_id, attention)

    @torch.no_grad()
    def _pool(self, rows: Sequence[Row]) -> Tensor:
        """The frozen encoder's features of all rows, (N, parts, L, W)."""
        self.network.eval()
        groups = bundles(rows, range(len(rows)), self.pack)
        pooled: Tensor | None = None
        for part in batches_by_length(rows, groups, 2 * self.config.batch_size):
            batch = self._collate(rows, part)
            with self.accelerator.autocast():
                values = self.network.encoder.pooled(batch.to(self.accelerator.device)).float().cpu()
            if pooled is None:
                pooled = torch.empty(len(rows), *values.shape[1:])
            pooled[batch.rows] = values
        return torch.empty(0) if pooled is None else pooled

    @torch.no_grad()
    def _fit_head(self, data: Data) -> None:
        """Set the head's mean and spread from a sample of the training pairs."""
        order = list(range(len(data.rows)))
        draw(self.seed, "fit").shuffle(order)
        chosen = order[:FIT_SAMPLE]
        self.network.eval()
        parts = batches_by_length(data.rows, bundles(data.rows, sorted(chosen), self.pack), 64)
        vectors = [self.network.sentence_vectors(self._inputs(data, part)[0]).float() for part in parts]
        self.network.head.fit(torch.cat(vectors))

    def _parameter_groups(self) -> list[dict[str, Any]]:
        """Encoder and head at their own rates; no decay on biases and norms."""
        config = self.config
        groups: dict[tuple[float, float], list[torch.nn.Parameter]] = {}
        for name, parameter in self.network.named_parameters():
            if name in self.trained:
                rate = config.learning_rate if name.startswith("encoder.base.") else config.head_learning_rate
                groups.setdefault((rate, config.weight_decay if parameter.ndim > 1 else 0.0), []).append(parameter)
        return [
            {"params": params, "lr": rate, "initial_lr": rate, "weight_decay": decay}
            for (rate, decay), params in groups.items()
        ]

    def _check(self, dev: Data, progress: Progress) -> Progress:
        """Evaluate, keep the weights where they are the best so far, and guard against collapse."""
        figures = self.evaluate(dev)
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


def log_path(folder: Path) -> Path:
    """The log, one JSON object a line: beside the folder, since it holds times and is no part of the result."""
    return folder.with_name(folder.name + ".log.jsonl")


def rate_factor(step: int, total: int, warmup: float) -> float:
    """The share of the learning rate at a step: linear warm-up from above 0, then linear decay to 0.

    >>> [round(rate_factor(s, 10, 0.2), 2) for s in (0, 1, 2, 9)]
    [0.5, 1.0, 1.0, 0.12]
    """
    rising = max(1, round(total * warmup)) if warmup else 0
    if step < rising:
        return (step + 1) / rising
    return (total - step) / max(1, total - rising)


def ranking_loss(outputs: Tensor, labels: Tensor, sequence: Tensor) -> Tensor:
    """Mean logistic loss over pairs of responses to one context whose labels differ; 0 where there are none."""
    ordered = (labels.unsqueeze(1) > labels.unsqueeze(0)) & (sequence.unsqueeze(1) == sequence.unsqueeze(0))
    margins = outputs.unsqueeze(1) - outputs.unsqueeze(0)
    return torch.nn.functional.softplus(-margins[ordered]).sum() / ordered.sum().clamp(min=1)


def _sequence_of(groups: Sequence[Sequence[int]]) -> Tensor:
    return torch.tensor([s for s, group in enumerate(groups) for _ in group])


def _not_finite(problem: str) -> BackendError:
    return BackendError("training", problem, hint="use precision: fp32 or a smaller learning_rate")


def _collapsed(figures: DevFigures) -> BackendError:
    return BackendError(
        "training",
        f"collapsed: {figures.reason or 'no usable check'} on {figures.n} dev pairs (spread {figures.spread:.2g}, loss "
        f"{figures.loss:.4f} against {figures.mean_loss:.4f} for always predicting the mean)",
        hint="use a smaller learning_rate or more warmup",
    )
