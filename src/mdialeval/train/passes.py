"""What is done with encoded pairs: forward passes, features of a frozen encoder, evaluation, one update.

A batch that does not fit into memory is halved, and again, until it does; gradients add up to the same step (dropout
aside, whose masks are drawn a part at a time).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from torch import Tensor

from mdialeval.config.train import TrainConfig
from mdialeval.devices import out_of_memory, release_memory
from mdialeval.errors import BackendError
from mdialeval.model.batches import Batch, batches_by_length, bundles, collate
from mdialeval.model.fusion import contrastive_loss
from mdialeval.model.graph_input import GraphBatch, GraphRow, collate_graphs
from mdialeval.model.markup import Row
from mdialeval.model.memory import Bundles, Fitting
from mdialeval.model.network import EvaluatorNetwork
from mdialeval.tasks.draws import draw
from mdialeval.train.dev import DevFigures, dev_figures
from mdialeval.train.siamese import drawn_together

log = logging.getLogger(__name__)

FIT_SAMPLE = 512  # pairs whose vectors set the head's mean and spread


class Data:
    """Encoded pairs with labels and weights, and the sentence features where the encoder is frozen.

    Args:
        rows: token ids.
        ids: the pairs' ids, for messages.
        labels: in [0, 1].
        weights: of each pair in the loss.
        graphs: of each pair, where the network has a graph branch.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        ids: Sequence[str],
        labels: Sequence[float],
        balance: bool,
        graphs: Sequence[GraphRow] | None = None,
    ) -> None:
        self.rows, self.ids, self.graphs = rows, ids, graphs
        self.labels = torch.tensor(labels, dtype=torch.float32)
        self.weights = _class_weights(self.labels) if balance else torch.ones(len(rows))
        self.pooled: Tensor | None = None
        self.twins: Data | None = None
        self.twin_of: dict[int, int] = {}  # row -> its twin

    def pair_up(self, rows: Sequence[Row | None]) -> None:
        """Give the pairs their paraphrases, None where there is none; they learn the label of their pair."""
        owners = [i for i, row in enumerate(rows) if row is not None]
        self.twin_of = {owner: twin for twin, owner in enumerate(owners)}
        twins, ids = [row for row in rows if row is not None], [self.ids[i] for i in owners]
        self.twins = Data(twins, ids, self.labels[owners].tolist(), balance=False)


def _class_weights(labels: Tensor) -> Tensor:
    """Weights that give both sides of .5 the same sum; their mean is 1."""
    positive = labels > 0.5
    n, n_positive = len(labels), int(positive.sum())
    if n_positive in (0, n):
        return torch.ones(n)
    return torch.where(positive, n / (2 * n_positive), n / (2 * (n - n_positive)))


class Passes:
    """The network at work on ``Data``.

    Args:
        accelerator: device, precision, processes.
        network: on the accelerator's device.
        tokenizer: for its special tokens.
        config: the recipe.
        seed: of dropout and of the sample that the head is fitted on.
        frozen: whether the encoder learns nothing.
    """

    def __init__(
        self,
        accelerator: Accelerator,
        network: EvaluatorNetwork,
        tokenizer: Any,
        config: TrainConfig,
        seed: int,
        frozen: bool,
    ) -> None:
        self.accelerator, self.network, self.tokenizer = accelerator, network, tokenizer
        self.config, self.seed, self.frozen = config, seed, frozen
        self.pack = 1 if network.architecture.attention == "joint" else config.pack
        self.parts = 1  # into how many a batch is cut to fit into memory
        self._fitting = Fitting("training")  # the same for passes without gradients

    def prepare(self, train: Data, dev: Data) -> None:
        """Encode everything once where the encoder is frozen, and set the head's mean and spread."""
        self.network.to(self.accelerator.device)
        if not self.network.reads_text:
            return
        if self.frozen:
            for data in (train, dev, *([train.twins] if train.twins else [])):
                data.pooled = self._pool(data.rows) if data.pooled is None else data.pooled
        self._fit_head(train)

    def evaluate(self, data: Data) -> DevFigures:
        """Figures on held-out pairs; every process takes its share and all get the same answer."""
        config, world, rank = self.config, self.accelerator.num_processes, self.accelerator.process_index
        groups = bundles(data.rows, range(len(data.rows)), self.pack)
        found: list[tuple[int, float, float]] = []
        self.network.eval()

        def predict(part: Bundles) -> None:
            inputs, rows = self._inputs(data, part)
            with torch.inference_mode(), self.accelerator.autocast():
                outputs = self.network(inputs, self._graphs(data, rows))
            outputs = outputs.float()
            losses = self.network.losses(outputs, data.labels[rows].to(outputs.device))
            scores = self.network.to_scores(outputs)
            found.extend(zip(rows.tolist(), scores.double().tolist(), losses.double().tolist(), strict=True))

        self._fitting.each(batches_by_length(data.rows, groups, 2 * config.batch_size)[rank::world], predict)
        if world > 1:
            found = gather_object(found)
        for row, score, loss in found:
            if not (math.isfinite(score) and math.isfinite(loss)):
                raise not_finite(f"the prediction for dev pair {data.ids[row]!r} is {score} (loss {loss})")
        rows_found, scores_found, losses_found = zip(*found, strict=True)
        return dev_figures(rows_found, scores_found, losses_found, data.labels.tolist(), config.loss)

    def update(self, model: Any, optimizer: Any, data: Data, batches: list[list[list[int]]], step: int) -> float:
        """One update from some batches of bundles; the mean loss of their pairs on this process.

        Raises:
            BackendError: a loss is not finite (the message names the step and the pairs), or memory ran out with the
                smallest batches, or on one of several processes, whose batches must stay alike.
        """
        while True:
            try:
                loss = self._gradients(model, data, batches, step)
                break
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                if self.accelerator.num_processes > 1 or self.parts >= max(map(self._most_parts, batches)):
                    raise _does_not_fit(step, self.accelerator.num_processes) from error
            optimizer.zero_grad()
            release_memory()
            if self.parts == 1:
                log.warning(
                    "out of memory at step %d: smaller batches from here on, adding up to the same step", step + 1
                )
            self.parts *= 2
            log.info("batches are cut into %d parts", self.parts)
        self.accelerator.clip_grad_norm_([p for g in optimizer.param_groups for p in g["params"]], self.config.clip)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    def _most_parts(self, batch: Bundles) -> int:
        """Into how many parts a batch can be cut; the ranking loss compares the rows of a bundle, which stays whole."""
        return len(batch) if self.config.ranking else sum(map(len, batch))

    def _gradients(self, model: Any, data: Data, batches: list[list[list[int]]], step: int) -> float:
        """Add up the gradients of a step."""
        world, rank = self.accelerator.num_processes, self.accelerator.process_index
        torch.manual_seed(draw(self.seed, "dropout", step, rank).getrandbits(62))
        model.train()
        if self.frozen:
            self.network.encoder.base.eval()
        weight = sum(float(data.weights[i]) for batch in batches for group in batch for i in group)
        pieces = [piece for batch in batches for piece in _cut(batch, self.parts, inside=not self.config.ranking)]
        shown = 0.0
        for k, piece in enumerate(pieces):
            mine = piece[rank::world]
            with nullcontext() if k == len(pieces) - 1 else self.accelerator.no_sync(model):
                loss = self._loss(model, data, mine or piece[:1], step)  # without a share, still take part
                loss = loss * (world / weight if mine else 0.0)
                self.accelerator.backward(loss)
                shown += float(loss.detach())
        return shown

    def _loss(self, model: Any, data: Data, groups: Sequence[Sequence[int]], step: int) -> Tensor:
        """The weighted sum of the losses of some bundles."""
        inputs, rows = self._inputs(data, groups)
        graphs, config = self._graphs(data, rows), self.config
        aligned = graphs is not None and config.graph.contrastive != "none"
        with self.accelerator.autocast():
            found = model(inputs, graphs, aligned, vectors=data.twins is not None)
        found, vectors = found if data.twins is not None else (found, None)
        outputs = (found[0] if aligned else found).float()
        labels, weights = data.labels[rows].to(outputs.device), data.weights[rows].to(outputs.device)
        losses = self.network.losses(outputs, labels)
        if not bool(torch.isfinite(losses).all()):
            bad = [data.ids[i] for i in rows[~torch.isfinite(losses).cpu()].tolist()]
            raise not_finite(f"the loss of step {step + 1} is not finite for the pairs {', '.join(bad[:5])}")
        loss = (weights * losses).sum()
        if config.ranking:
            sequence = torch.tensor([s for s, group in enumerate(groups) for _ in group], device=outputs.device)
            loss = loss + config.ranking * weights.sum() * ranking_loss(outputs, labels, sequence)
        if aligned and graphs is not None:
            contrast = contrastive_loss(found[1], labels > 0.5, graphs.has_graph, config.graph.contrastive)
            loss = loss + config.graph.weight * weights.sum() * contrast
        if vectors is not None:
            loss = loss + self._siamese(model, data, rows, outputs, vectors)
        return loss

    def _siamese(self, model: Any, data: Data, rows: Tensor, outputs: Tensor, vectors: Tensor) -> Tensor:
        """The weighted sum of the paraphrases' losses and of what draws pairs and paraphrases together."""
        place = {row: i for i, row in enumerate(rows.tolist())}
        owner_of = {data.twin_of[row]: row for row in place if row in data.twin_of}
        if data.twins is None or not owner_of:
            return outputs.new_zeros(())
        inputs, found = self._inputs(data.twins, bundles(data.twins.rows, list(owner_of), self.pack))
        owners = torch.tensor([owner_of[twin] for twin in found.tolist()])
        with self.accelerator.autocast():
            others, other_vectors = model(inputs, self._graphs(data, owners), vectors=True)
        others = others.float()
        mine = torch.tensor([place[owner] for owner in owners.tolist()], device=outputs.device)
        labels, weights = data.labels[owners].to(others.device), data.weights[owners].to(others.device)
        scores = self.network.to_scores(outputs[mine]), self.network.to_scores(others)
        together = drawn_together(scores, (vectors[mine], other_vectors), self.config.siamese.term)
        return (weights * (self.network.losses(others, labels) + self.config.siamese.weight * together)).sum()

    def _graphs(self, data: Data, rows: Tensor) -> GraphBatch | None:
        """The graphs of some rows of the data."""
        if data.graphs is None:
            return None
        batch = collate_graphs([data.graphs[i] for i in rows.tolist()], self.tokenizer.pad_token_id)
        return batch.to(self.accelerator.device)

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
        pooled = torch.empty(0)

        def pool(part: Bundles) -> None:
            nonlocal pooled
            batch = self._collate(rows, part)
            with self.accelerator.autocast():
                values = self.network.encoder.pooled(batch.to(self.accelerator.device)).float().cpu()
            if not len(pooled):
                pooled = torch.empty(len(rows), *values.shape[1:])
            pooled[batch.rows] = values

        self._fitting.each(batches_by_length(rows, groups, 2 * self.config.batch_size), pool)
        return pooled

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


def ranking_loss(outputs: Tensor, labels: Tensor, sequence: Tensor) -> Tensor:
    """Mean logistic loss over pairs of responses to one context whose labels differ; 0 where there are none."""
    ordered = (labels.unsqueeze(1) > labels.unsqueeze(0)) & (sequence.unsqueeze(1) == sequence.unsqueeze(0))
    margins = outputs.unsqueeze(1) - outputs.unsqueeze(0)
    return torch.nn.functional.softplus(-margins[ordered]).sum() / ordered.sum().clamp(min=1)


def _cut(batch: Bundles, parts: int, inside: bool) -> Iterator[Bundles]:
    """A batch in about ``parts`` parts, none empty; ``inside`` cuts bundles too.

    >>> list(_cut([[0, 1], [2, 3], [4]], 2, inside=False)), list(_cut([[0, 1, 2]], 2, inside=True))
    ([[[0, 1], [2, 3]], [[4]]], [[[0, 1]], [[2]]])
    """
    if inside and parts > len(batch):
        most = math.ceil(sum(map(len, batch)) / parts)
        batch = [bundle[start : start + most] for bundle in batch for start in range(0, len(bundle), most)]
    size = math.ceil(len(batch) / parts)
    for start in range(0, len(batch), size):
        yield batch[start : start + size]


def _does_not_fit(step: int, processes: int) -> BackendError:
    where = f"on one of {processes} processes" if processes > 1 else "with a single pair"
    return BackendError(
        "training",
        f"out of memory {where} at step {step + 1}",
        hint="use gradient_checkpointing: true, a smaller batch_size with a larger accumulate, or a smaller max_tokens",
    )


def not_finite(problem: str) -> BackendError:
    """The error of a number that is none."""
    return BackendError("training", problem, hint="use precision: fp32 or a smaller learning_rate")
