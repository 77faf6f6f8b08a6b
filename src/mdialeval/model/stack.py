"""An evaluator's own score and a causal language model's likelihoods, weighed into one score.

Stacked generalisation (Wolpert 1992): both say something about a pair, and a logistic regression on pairs that the
evaluator did not learn from says how much each counts.  It learns from constructed pairs, never from people's ratings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mdialeval.devices import choose_device
from mdialeval.errors import ConfigError
from mdialeval.model.encoder import setup_hash, weights_hash
from mdialeval.model.features import FrozenFeatures
from mdialeval.model.likelihood import load_reader
from mdialeval.model.markup import Markup, Row, encode_pairs
from mdialeval.model.network import Architecture, EvaluatorNetwork
from mdialeval.records import Example, TrainingPair
from mdialeval.signature import fingerprint

Array = np.ndarray[Any, np.dtype[np.float64]]

_NEAREST = 1e-7  # to 0 or 1 that a score counts: beyond it float32 knows no difference


@dataclass(frozen=True, slots=True)
class Stack:
    """What was learned; a folder's ``evaluator.json`` holds it.

    Attributes:
        model: the causal language model as the configuration names it.
        model_hash: of its weights and configuration.
        in_context: whether it also reads the response in its context.
        mean, spread: of each input over the pairs it was learned on.
        weights: of each standardised input: the evaluator's own logit first, then the likelihoods' figures.
        bias: added to their sum, which is the logit of the score.
    """

    model: str
    model_hash: str
    in_context: bool
    mean: tuple[float, ...]
    spread: tuple[float, ...]
    weights: tuple[float, ...]
    bias: float

    @property
    def signature(self) -> dict[str, str]:
        """What its numbers depend on."""
        learned = fingerprint([self.mean, self.spread, self.weights, self.bias])
        return {"likelihood": f"{Path(self.model).name}@{self.model_hash}", "stack": learned}

    def scores(self, inputs: Array) -> Array:
        """Scores (N,) in [0, 1], higher is better, of inputs (N, F): see ``inputs_of``."""
        standard = (inputs - np.array(self.mean)) / np.array(self.spread)
        found: Array = torch.from_numpy(standard @ np.array(self.weights) + self.bias).sigmoid().numpy()
        return found


class Figures(NamedTuple):
    """What the language model says of some pairs, and how much of them it saw.

    Attributes:
        values: (N, 4 or 8).
        truncated: whether a turn or the response was cut inside.
        n_turns_dropped: context turns that did not fit.
    """

    values: Tensor
    truncated: list[bool]
    n_turns_dropped: list[int]


class Reader:
    """The language model at work; see ``likelihood.LikelihoodEncoder`` for its figures.

    Args:
        model: ``embedded``, a ``.gguf`` file, a checkpoint folder or a name on the hub.
        in_context: whether pairs have contexts.
        device: ``auto``, ``cpu``, ``cuda`` ...
        features: figures that are known already, and where new ones are kept; of this reader alone where None.

    Raises:
        BackendError, ConfigError, MissingExtraError: the model cannot be loaded.
    """

    def __init__(
        self, model: str, in_context: bool, device: str = "auto", features: FrozenFeatures | None = None
    ) -> None:
        base, self._tokenizer = load_reader(f"likelihood:{model}")
        self.hash, self.in_context = (
            fingerprint([weights_hash(base), setup_hash(base, self._tokenizer)], 16),
            in_context,
        )
        architecture = Architecture(pooling="parts" if in_context else "response", reads="likelihood")
        self._network = EvaluatorNetwork(base, architecture).to(choose_device(device)).eval()
        self._features = features or FrozenFeatures(None)

    def figures(
        self,
        pairs: Sequence[TrainingPair | Example],
        markup: Markup,
        on_rows: Callable[[int], None] | None = None,
    ) -> Figures:
        """Figures of pairs, in order; every pair needs a response with words.

        Args:
            pairs: what is read.
            markup: length limit (at most the model's window) and turns, counted by the model's own tokenizer.
            on_rows: called with the number of distinct pairs read so far.
        """
        limit = min(markup.max_tokens, self._tokenizer.window)
        rows = encode_pairs(self._tokenizer, pairs, replace(markup, max_tokens=limit))
        bare = [Row(row.context, row.response, 0, 0, False) for row in rows]
        pooled = self._features.of(self._network, self._tokenizer, bare, self.hash, on_rows)
        return Figures(pooled.flatten(1), [row.truncated for row in rows], [row.n_turns_dropped for row in rows])


def inputs_of(scores: Sequence[float], loss: str, figures: Figures) -> Array:
    """The inputs (N, F) of a stack: the evaluator's own logits and the figures.

    Args:
        scores: the evaluator's own, (N,).
        loss: what it learned by: a classifier's score is turned back into a logit, a regression's is taken as it is.
        figures: of the same pairs.
    """
    own = torch.tensor(scores, dtype=torch.float64)
    own = own.logit(_NEAREST) if loss == "bce" else own
    found: Array = torch.cat([own[:, None], figures.values.double()], dim=1).numpy()
    return found


def refuse_stack(stack: Stack | None, what: str) -> None:
    """Raises ConfigError where an evaluator also reads a language model, which cannot go where it goes."""
    if stack is not None:
        raise ConfigError(
            f"{what}: this evaluator also reads the language model {stack.model!r}, which stays a model of its own; "
            "its stage names the evaluator without it"
        )
