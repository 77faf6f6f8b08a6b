"""What a causal language model finds probable: two scores that nothing here was trained for.

``understandability`` is the log-likelihood of the response by itself.  ``sensibleness`` is the share of the response's
information that the context explains: the pointwise mutual information of context and response (Church and Hanks
1990) over the response's own information, ``(ln P(r | c) - ln P(r)) / -ln P(r)``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from mdialeval.errors import ConfigError
from mdialeval.llm.causal import EMBEDDED, CausalLM, causal_assets, identity, load_causal, log_probabilities
from mdialeval.model.markup import clean
from mdialeval.records import Example, Prediction, PredictionStatus, Scalar
from mdialeval.registry import Asset
from mdialeval.scorers.statuses import usable
from mdialeval.signature import signature_line, versions

_DIMENSIONS = ("understandability", "sensibleness")
_TURN, _END = "-", "\n"  # a dialogue is written as a list, the same in every language
_LEAST = -1e-6  # ln P(r) above this: the model is certain of the response, and there is nothing to explain
_SHORTEST = 8  # tokens of a newest turn that are worth reading where the whole turn does not fit

Ids = tuple[int, ...]


class _Row(NamedTuple):
    """An example as token ids."""

    context: tuple[Ids, ...]  # the turns that fit
    response: Ids
    n_turns_dropped: int
    context_cut: bool
    response_cut: bool


class Likelihood:
    """Log-likelihoods of responses under a causal language model.

    ``understandability`` is a sum over tokens, at most 0 and higher for likelier (and for shorter) responses; with
    ``normalise: tokens`` their mean.  ``sensibleness`` is at most 1, higher where the context makes the response
    likelier, below 0 where it makes it less likely.

    Args:
        model: ``embedded`` (Gemma 3 270M), a ``.gguf`` file, a checkpoint folder, or a name on the hub.
        dimensions: which of both.
        normalise: ``none`` or ``tokens``, of ``understandability``.
        max_turns: context turns that are read, the newest.
        max_tokens: of context and response together; older turns are dropped first, and of a newest turn that is
            too long by itself the end is read.
        batch_size: responses to one context at a time.
        device: ``auto``, ``cpu``, ``cuda`` ...

    Raises:
        ConfigError: an unknown dimension or normalisation, or no such model.
        BackendError: the model cannot be loaded.
    """

    name = "likelihood"

    def __init__(
        self,
        model: str = EMBEDDED,
        dimensions: Sequence[str] = _DIMENSIONS,
        normalise: Literal["none", "tokens"] = "none",
        max_turns: int = 4,
        max_tokens: int = 512,
        batch_size: int = 32,
        device: str = "auto",
    ) -> None:
        _check(dimensions, normalise, max_turns, max_tokens)
        self.dimensions = tuple(dimensions)
        self._name, self._mean, self._device, self._batch_size = model, normalise == "tokens", device, batch_size
        self._max_turns, self._max_tokens = max_turns, max_tokens
        self._causal: CausalLM | None = None
        self._ids: dict[str, Ids] = {}
        self.signature = signature_line(
            {
                "scorer": "likelihood",
                "model": identity(model),
                "normalise": normalise,
                "max_turns": max_turns,
                "max_tokens": max_tokens,
                **versions("torch", "transformers"),
            }
        )

    @staticmethod
    def assets(
        model: str = EMBEDDED,
        dimensions: Sequence[str] = _DIMENSIONS,
        normalise: str = "none",
        max_turns: int = 4,
        max_tokens: int = 512,
        **_: Any,
    ) -> list[Asset]:
        """The model, where it lies on this machine; nothing is loaded.

        Raises:
            ConfigError: see the class.
        """
        _check(dimensions, normalise, max_turns, max_tokens)
        return causal_assets(model)

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """One prediction an example and dimension; without a context ``sensibleness`` is ``empty``."""
        if self._causal is None:
            self._causal = load_causal(self._name, self._device)
        self._ids.clear()  # turns recur inside a shard, not for ever
        usables = [i for i, example in enumerate(examples) if usable(example) == "ok"]
        rows = {i: row for i in usables if (row := self._row(self._causal, examples[i])).response}
        alone = self._sums(self._causal, {i: ((), row.response) for i, row in rows.items()})
        given: Mapping[int, float] = {}
        if "sensibleness" in self.dimensions:
            given = self._sums(self._causal, {i: row[:2] for i, row in rows.items() if row.context})
        return [
            p for i, e in enumerate(examples) for p in self._predictions(e, rows.get(i), alone.get(i), given.get(i))
        ]

    def _row(self, causal: CausalLM, example: Example) -> _Row:
        room = min(self._max_tokens, causal.window) - len(causal.start) - len(self._encoded(causal, _TURN))
        text = example.response.text if example.response is not None else ""
        response = self._encoded(causal, f" {clean(text)}{_END}")
        response_cut, context_cut = len(response) > room, False
        response = response[: max(0, room)]
        room -= len(response)
        texts = [clean(turn.text) for turn in example.context if turn.text.strip()]
        kept: list[Ids] = []
        for text in reversed(texts[-self._max_turns :]):
            turn = self._encoded(causal, f"{_TURN} {text}{_END}")
            if len(turn) > room:
                if not kept and room >= _SHORTEST:
                    kept, context_cut = [turn[-room:]], True
                break
            kept.insert(0, turn)
            room -= len(turn)
        return _Row(tuple(kept), response, len(texts) - len(kept), context_cut, response_cut)

    def _encoded(self, causal: CausalLM, text: str) -> Ids:
        if text not in self._ids:
            self._ids[text] = tuple(causal.encode(text))
        return self._ids[text]

    def _sums(self, causal: CausalLM, rows: Mapping[int, tuple[tuple[Ids, ...], Ids]]) -> dict[int, float]:
        """Row -> ln P of its response; a context is read once for all its responses, equal rows are computed once."""
        groups: dict[tuple[Ids, ...], dict[Ids, list[int]]] = {}
        for i, (context, response) in rows.items():
            groups.setdefault(context, {}).setdefault(response, []).append(i)
        found: dict[int, float] = {}
        opening = self._encoded(causal, _TURN)
        for context, responses in groups.items():
            before = [*causal.start, *(token for turn in context for token in turn), *opening]
            values = log_probabilities(causal.model, before, list(responses), self._batch_size)
            for same, value in zip(responses.values(), values, strict=True):
                found.update(dict.fromkeys(same, float(value.double().sum())))
        return found

    def _predictions(
        self, example: Example, row: _Row | None, alone: float | None, given: float | None
    ) -> Iterator[Prediction]:
        """One a dimension; a response of which the tokenizer leaves nothing is ``empty``."""
        for dimension in self.dimensions:
            head = (example.id, example.language, self.name, dimension)
            if row is None or alone is None:
                reason = usable(example)
                yield Prediction(*head, None, "empty" if reason == "ok" else reason)
                continue
            if not math.isfinite(alone + (given or 0.0)):
                yield Prediction(*head, None, "failed", {"reason": "the model's probabilities are not finite"})
                continue
            detail: dict[str, Scalar] = {"n_tokens": len(row.response), "log_likelihood": round(alone, 3)}
            status: PredictionStatus = "truncated" if row.response_cut else "ok"
            if dimension == "understandability":
                yield Prediction(*head, alone / len(row.response) if self._mean else alone, status, detail)
                continue
            detail["n_turns_dropped"] = row.n_turns_dropped
            if given is None:
                yield Prediction(*head, None, "empty", detail)
            else:
                detail["log_likelihood_in_context"] = round(given, 3)
                share = 1 - given / alone if alone < _LEAST else 0.0
                yield Prediction(*head, share, "truncated" if row.context_cut else status, detail)


def _check(dimensions: Sequence[str], normalise: str, max_turns: int, max_tokens: int) -> None:
    """Refuse options that no model could score by.

    Raises:
        ConfigError: lists every problem.
    """
    problems = [f"dimension {d!r} is none of {', '.join(_DIMENSIONS)}" for d in dimensions if d not in _DIMENSIONS]
    if isinstance(dimensions, str):
        problems = [f"dimensions is the word {dimensions!r}: write a list, [{dimensions}]"]
    elif not dimensions or len(set(dimensions)) < len(dimensions):
        problems.append("dimensions: name at least one, each once")
    if normalise not in ("none", "tokens"):
        problems.append(f"normalise is {normalise!r}: use none or tokens")
    if max_turns < 1 or max_tokens < 16:
        problems.append("max_turns must be at least 1 and max_tokens at least 16")
    if problems:
        raise ConfigError([f"scorer 'likelihood': {p}" for p in problems])
