"""Which learning rate to take: a short sweep of growing rates over the training pairs (Smith, WACV 2017).

The rates of encoder and head grow together, in the proportion that the recipe gives them.  The loss falls, has a
minimum and climbs; a good rate to train with lies about a factor of ten under the rate of the minimum.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from mdialeval.config.train import TrainConfig
from mdialeval.model.markup import Row
from mdialeval.model.memory import Bundles
from mdialeval.records import TrainingPair
from mdialeval.train.evaluators import set_up
from mdialeval.train.loop import parameter_groups
from mdialeval.train.passes import Passes
from mdialeval.train.plan import check_labels, epoch_batches, limit_pairs, split_by_group

STEPS = 80
SPAN = 1e2  # the sweep goes from the recipe's rates divided by this to the rates times this
KEEP = 0.85  # of the running mean of the losses, a step
TOO_HIGH = 2.0  # the sweep ends where the mean loss is so many times its minimum
BELOW = 10.0  # the suggestion lies so far under the minimum
FALL = 0.02  # share that the mean loss must fall by, for a minimum to count


class RateSweep(NamedTuple):
    """A learning rate sweep.

    Attributes:
        factors: what the recipe's rates were multiplied by, a step each.
        rates: of the encoder; of the head where the encoder does not learn.
        losses: loss of each step's pairs before its update.
        means: running means of the losses, without the bias of their start.
        best: step of the least mean loss, or None where it did not fall.
        learning_rate, head_learning_rate: the suggestion, or None.
        reason: what speaks for it, or against one.
    """

    factors: tuple[float, ...]
    rates: tuple[float, ...]
    losses: tuple[float, ...]
    means: tuple[float, ...]
    best: int | None
    learning_rate: float | None
    head_learning_rate: float | None
    reason: str


def find_rate(pairs: Sequence[TrainingPair], config: TrainConfig, seed: int, steps: int = STEPS) -> RateSweep:
    """Sweep the learning rates over the pairs that ``train_evaluator`` would learn from; nothing is kept of it.

    The same pairs, recipe and seed give the same sweep.

    Args:
        pairs: what an evaluator would be trained on.
        config: the recipe, without a graph branch.
        seed: of split, order and dropout.
        steps: updates at most.

    Raises:
        DataError: nothing can be learned from the pairs.
        BackendError: the encoder cannot be loaded.
    """
    chosen = limit_pairs(pairs, config.max_pairs, seed)
    check_labels(chosen, "training")
    ready = set_up(split_by_group(chosen, config.dev_share, seed), config, seed)
    network, config = ready.network, ready.config
    learns = any(n.startswith("encoder.base.") and p.requires_grad for n, p in network.named_parameters())
    passes = Passes(ready.accelerator, network, ready.tokenizer, config, seed, frozen=not learns)
    passes.prepare(ready.train, ready.dev)
    model, optimizer = ready.accelerator.prepare(network, torch.optim.AdamW(parameter_groups(network, config)))
    factors, losses, means = [], [], list[float]()
    for step, batch in enumerate(itertools.islice(_batches(passes, ready.train.rows, config, seed), steps)):
        factor = SPAN ** (2 * step / max(1, steps - 1) - 1)
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"] * factor
        loss = passes.update(model, optimizer, ready.train, [batch], step)
        factors.append(factor)
        losses.append(loss)
        means = running_means(losses)
        if step >= steps // 4 and means[-1] > TOO_HIGH * min(means):
            break
    base_rate = config.learning_rate if learns else config.head_learning_rate
    best, reason = suggest(factors, means, base_rate)
    factor_taken = None if best is None else factors[best] / BELOW
    return RateSweep(
        tuple(factors),
        tuple(base_rate * factor for factor in factors),
        tuple(losses),
        tuple(means),
        best,
        None if factor_taken is None else config.learning_rate * factor_taken,
        None if factor_taken is None else config.head_learning_rate * factor_taken,
        reason,
    )


def running_means(losses: Sequence[float], keep: float = KEEP) -> list[float]:
    """Exponentially weighted means of what came so far.

    >>> running_means([1.0, 1.0, 4.0], keep=0.5)
    [1.0, 1.0, 2.7142857142857144]
    """
    found, total, weight = [], 0.0, 0.0
    for loss in losses:
        total, weight = keep * total + loss, keep * weight + 1.0
        found.append(total / weight)
    return found


def suggest(factors: Sequence[float], means: Sequence[float], base_rate: float) -> tuple[int | None, str]:
    """The step of the least mean loss, and what it says; None where the loss did not fall.

    >>> suggest([0.1, 1.0, 10.0], [0.7, 0.5, 0.9], 1e-4)
    (1, 'the loss is least (0.500) at a rate of 1.0e-04; a tenth of it is a good start')
    >>> suggest([0.1, 1.0], [0.7, 0.9], 1e-4)[0] is None
    True
    """
    best = min(range(len(means)), key=means.__getitem__)
    start = max(means[: max(1, len(means) // 10)])
    if not math.isfinite(means[best]) or means[best] > (1 - FALL) * start:
        return None, f"the loss never fell below its start ({start:.3f}): more pairs, or other data, are needed"
    rate = base_rate * factors[best]
    reason = f"the loss is least ({means[best]:.3f}) at a rate of {rate:.1e}; a tenth of it is a good start"
    if best == len(means) - 1:
        reason += " (it was still falling at the end: start from higher rates to see more)"
    return best, reason


def _batches(passes: Passes, rows: Sequence[Row], config: TrainConfig, seed: int) -> Iterator[Bundles]:
    """Batches of one epoch after the other, without end."""
    for epoch in itertools.count():
        yield from epoch_batches(rows, seed, epoch, config.batch_size, passes.pack)
