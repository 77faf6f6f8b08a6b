"""Learning how much an evaluator's own score and a language model's likelihoods count: see ``model.stack``."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from mdialeval.config.train import TrainConfig
from mdialeval.errors import BackendError, DataError
from mdialeval.graphs.turns import PairGraphs
from mdialeval.model.adapters import speak
from mdialeval.model.evaluator import Evaluator
from mdialeval.model.features import FrozenFeatures
from mdialeval.model.saved import save_stacked
from mdialeval.model.stack import Array, Reader, Stack, inputs_of
from mdialeval.records import TrainingPair
from mdialeval.train.card import model_card
from mdialeval.train.dev import rank_agreement
from mdialeval.train.evaluators import encode_data
from mdialeval.train.plan import chosen_split, limit_pairs

log = logging.getLogger(__name__)

MOST = 1000  # held-out pairs that are read: nine weights need no more
_L2 = 1.0  # penalty on the squared weights of standardised inputs, against a sum over pairs


class Weighed(NamedTuple):
    """What a stack was learned on, and what it gained.

    Attributes:
        pairs: held-out pairs.
        statistic: see ``dev.rank_agreement``.
        alone: of the evaluator by itself, which was selected on these pairs.
        together: of stacks that did not see the pair's dialogue group; None where undefined.
        weights: of the evaluator's own score and of each figure, standardised inputs.
        turns_dropped, truncated: context turns that did not fit the language model, and pairs that it saw cut.
        warnings: what a reader of the scores should know.
    """

    pairs: int
    statistic: str
    alone: float | None
    together: float | None
    weights: tuple[float, ...]
    turns_dropped: int
    truncated: int
    warnings: tuple[str, ...]


def stack_evaluator(
    folder: Path,
    target: Path,
    pairs: Sequence[TrainingPair],
    config: TrainConfig,
    seed: int,
    *,
    graphs: Mapping[tuple[str, str], PairGraphs] | None = None,
    features: FrozenFeatures | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> Weighed:
    """Write an evaluator that also reads ``config.likelihood``, from one that ``train_evaluator`` made.

    Args:
        folder: of the evaluator.
        target: where the new one goes; its files are whole once ``evaluator.json`` is there.
        pairs, config, seed, graphs: as ``train_evaluator`` was given them: its held-out pairs are found by them.
        features: what the model said of texts before, and says now.
        on_rows: called with the number of pairs read.

    Raises:
        DataError: see ``train_evaluator``; or the held-out pairs are of one class.
        BackendError: a model cannot be loaded, or its probabilities are not finite.
    """
    evaluator = Evaluator.from_pretrained(folder, device=config.device)
    settings = evaluator.settings
    split = chosen_split(pairs, config.max_pairs, config.dev_share, seed)
    held = limit_pairs(split.dev, MOST, seed)
    if len({pair.label > 0.5 for pair in held}) < 2:
        raise DataError(
            f"likelihood: the {len(held)} held-out pairs are of one class, so that nothing says how much the language "
            "model counts; raise train.dev_share, or leave train.likelihood out"
        )
    data = encode_data(held, evaluator.tokenizer, settings.markup, config, graphs)
    if (tuning := settings.architecture.tuning) is not None and tuning.languages:
        speak(evaluator.network.encoder.base, tuning, tuning.home)
    own = evaluator.score_rows(data.rows, data.graphs)
    reader = Reader(config.likelihood, any(pair.context for pair in split.train), config.device, features)
    figures = reader.figures(held, settings.markup, on_rows)
    inputs = inputs_of(own, settings.architecture.loss, figures)
    labels, weights = (values.double().numpy() for values in (data.labels, data.weights))
    stack = _stack(config.likelihood, reader, *fit(inputs, labels, weights))
    alone, statistic, _ = rank_agreement(np.array(own), labels)
    groups = [pair.group for pair in held]
    together = None
    if len(set(groups)) > 1:
        together, _, _ = rank_agreement(cross_validated(inputs, labels, weights, groups), labels)
    shown = tuple(round(w, 4) for w in stack.weights)
    seen = (sum(figures.n_turns_dropped), sum(figures.truncated))
    found = Weighed(len(held), statistic, alone, together, shown, *seen, tuple(_warnings(alone, together, shown[0])))
    log.info("likelihoods: %s %s on %d held-out pairs, %s without", statistic, together, len(held), alone)
    for warning in found.warnings:
        log.warning("%s: %s", settings.dimension, warning)
    warnings = [*settings.training.get("warnings", []), *found.warnings]
    notes = {**settings.training, "likelihood": found._asdict(), "warnings": warnings}
    new = dataclasses.replace(settings, stack=stack, training=notes)
    save_stacked(folder, target, new, model_card(new))
    return found


def _warnings(alone: float | None, together: float | None, own: float) -> list[str]:
    found = []
    if together is None:
        found.append("one held-out dialogue group, so that nothing says whether the language model helps")
    elif alone is not None and together < alone:
        found.append(
            f"with the language model held-out pairs are told apart worse ({together:.3f}) than without ({alone:.3f})"
        )
    if own <= 0:
        found.append(f"the evaluator's own score counts {own:.2f}: what it learned does not hold on held-out pairs")
    return found


def _stack(model: str, reader: Reader, mean: Array, spread: Array, weights: Array, bias: float) -> Stack:
    middle, widths, learned = (tuple(values.tolist()) for values in (mean, spread, weights))
    return Stack(model, reader.hash, reader.in_context, middle, widths, learned, bias)


def fit(inputs: Array, labels: Array, weights: Array) -> tuple[Array, Array, Array, float]:
    """Mean and spread of the inputs (F,), the weights (F,) and the bias of a logistic regression.

    Args:
        inputs: (N, F).
        labels: (N,), in [0, 1].
        weights: (N,), how much each pair counts.

    Raises:
        BackendError: an input is not a finite number.
    """
    if not np.isfinite(inputs).all():
        raise BackendError("likelihood", "the model's probabilities are not finite", hint="name another model")
    mean, spread = inputs.mean(0), np.maximum(inputs.std(0), 1e-9)
    standard = (inputs - mean) / spread

    def loss(found: Array) -> tuple[float, Array]:
        outputs = standard @ found[1:] + found[0]
        off = weights * (1 / (1 + np.exp(-np.clip(outputs, -500, 500))) - labels)
        value = (weights * (np.logaddexp(0, outputs) - labels * outputs)).sum() + _L2 / 2 * (found[1:] ** 2).sum()
        return float(value), np.concatenate([[off.sum()], standard.T @ off + _L2 * found[1:]])

    solved: Array = minimize(loss, np.zeros(inputs.shape[1] + 1), jac=True, method="BFGS").x
    return mean, spread, solved[1:], float(solved[0])


def cross_validated(inputs: Array, labels: Array, weights: Array, groups: Sequence[str], folds: int = 5) -> Array:
    """Outputs (N,) for every pair by a regression that did not see its dialogue group."""
    order = {group: place for place, group in enumerate(sorted(set(groups)))}
    fold = np.array([order[group] % min(folds, len(order)) for group in groups])
    found = np.zeros(len(labels))
    for held in np.unique(fold):
        seen, left = fold != held, fold == held
        mean, spread, learned, bias = fit(inputs[seen], labels[seen], weights[seen])
        found[left] = (inputs[left] - mean) / spread @ learned + bias
    return found
