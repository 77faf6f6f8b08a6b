"""A language model as judge: one prompt a criterion and language; a number, an expectation or a mean of samples."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from mdialeval.assets import cache_folder
from mdialeval.cache import Cache
from mdialeval.errors import ConfigError, MissingExtraError, nearest
from mdialeval.llm.asking import Asked, ask, cached
from mdialeval.llm.blocks import fill, shown_turns
from mdialeval.llm.criteria import FALLBACK, PROMPTS, PromptText, prompt_text
from mdialeval.llm.estimate import Estimate, Prices, approximate_tokens, estimate
from mdialeval.llm.hints import GraphFormat, HintTable, Key
from mdialeval.llm.judgement import Mode, Repeated, combine, judge
from mdialeval.llm.protocol import CHAT_BACKENDS, ChatBackend, Completion, Prompt
from mdialeval.llm.tokens import score_labels
from mdialeval.records import Example, Prediction, PredictionStatus, Scalar, turns_of
from mdialeval.registry import Asset, accepted, assets, create, resolve
from mdialeval.scorers.statuses import usable
from mdialeval.signature import fingerprint, signature_line, version

log = logging.getLogger(__name__)

_KIND = "chat back end"
_SHOWN = 200  # characters of a reply in a prediction; the log of replies has all
_SAMPLING = 0.7


class _Row(NamedTuple):
    """One question about one example: the text of its prompt, or the status it has without asking."""

    example: Example
    criterion: str
    text: PromptText
    status: PredictionStatus
    drop: int


class LlmScorer:
    """Asks a model to rate each example on each criterion; one Prediction an example and criterion.

    Args:
        backend: an entry of ``mdialeval list chat``; what follows the named options here goes to it.
        criteria: names of prompts (``llm.criteria.criteria()``).
        mode: ``number`` parses the reply; ``expectation`` weights the score tokens by their probabilities; ``samples``
            is the mean over ``repeats`` replies at a temperature above 0.
        scale: lowest and highest score.
        repeats: replies a question; their spread is recorded.
        temperature: of the back end; 0, or 0.7 in ``samples``, where None.
        folder: the user's own prompts, ``<language>/<criterion>.toml``.
        prompt_language: one language for all prompts; the example's own where None.
        evaluator, graphs, graph_format: what the judge is told beside the dialogue; see ``llm.hints.HintTable``.
        max_turns: at most this many turns before what is rated, the newest.
        max_prompt_tokens: approximate length of a prompt, for servers that cut silently; oldest turns are dropped.
        min_coverage: an expectation over a smaller share of the probability is ``unparsed``.
        prices: ``{prompt, completion, currency}`` for a million tokens.
        cache, replies: the SQLite cache and the log of raw replies; in the user's cache folder where None.
        batch_size, device: go to a back end that has them.
        options: the back end's own, such as ``model``, ``base_url``, ``path``, ``max_tokens``.

    Raises:
        ConfigError: lists every option that is unknown or wrong.
    """

    name = "llm"
    passing: ClassVar[frozenset[str]] = frozenset({"failed"})
    refused: ClassVar[frozenset[str]] = frozenset({"refused", "empty"})

    def __init__(
        self,
        backend: str = "gguf",
        criteria: Sequence[str] = ("understandability", "sensibleness"),
        mode: Mode = "number",
        scale: Sequence[float] = (1, 5),
        repeats: int | None = None,
        temperature: float | None = None,
        folder: str | Path | None = None,
        prompt_language: str | None = None,
        evaluator: str | Path | Mapping[Key, float] | None = None,
        graphs: str | Path | Mapping[str, str] | None = None,
        graph_format: GraphFormat = "penman",
        max_turns: int | None = None,
        max_prompt_tokens: int | None = None,
        min_coverage: float = 0.1,
        prices: Mapping[str, float | str] | None = None,
        cache: str | Path | None = None,
        replies: str | Path | None = None,
        batch_size: int | None = None,
        device: str | None = None,
        **options: Any,
    ) -> None:
        self.dimensions = (criteria,) if isinstance(criteria, str) else tuple(criteria)
        self._mode, self._scale = mode, _scale(scale)
        self._repeats = repeats if repeats is not None else (5 if mode == "samples" else 1)
        temperature = temperature if temperature is not None else (_SAMPLING if mode == "samples" else 0.0)
        _check(self.dimensions, mode, self._scale, self._repeats, temperature, min_coverage)
        self._folder, self._prompt_language = folder, prompt_language
        for criterion in self.dimensions:
            prompt_text(criterion, FALLBACK, folder)
        self._hints = HintTable(evaluator, graphs, graph_format)
        self._blocks = [name for name, given in (("evaluator", evaluator), ("graph", graphs)) if given is not None]
        self._graph_format = graph_format
        self._max_turns, self._max_prompt_tokens, self._min_coverage = max_turns, max_prompt_tokens, min_coverage
        self._prices = Prices.of(prices)
        self._cache_path = Path(cache).expanduser() if cache else cache_folder() / "llm.sqlite"
        self._replies = Path(replies).expanduser() if replies else self._cache_path.with_name("llm-replies.jsonl")
        shared = {"temperature": temperature, "batch_size": batch_size, "device": device}
        self._options = _backend_options(backend, options, {k: v for k, v in shared.items() if v is not None})
        self._backend: ChatBackend = create(_KIND, CHAT_BACKENDS, backend, self._options)
        self.signature = self._signature()

    @staticmethod
    def assets(backend: str = "gguf", folder: str | Path | None = None, **options: Any) -> list[Asset]:
        """What the back end needs, with the terms of its model, and the folder of prompts; loads and asks nothing.

        Raises:
            ConfigError: an option that neither the scorer nor the back end has.
        """
        own = inspect.signature(LlmScorer).parameters
        try:
            given = _backend_options(backend, {k: v for k, v in options.items() if k not in own}, {})
        except MissingExtraError:  # named by the list below
            given = {}
        listed = assets(_KIND, CHAT_BACKENDS, backend, given)
        if folder is not None:
            there = Path(folder).is_dir()
            listed.append(Asset("prompts", "file", there, str(folder), "" if there else "change the path"))
        return listed

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Predictions, example by example, criterion by criterion.

        Raises:
            BackendError: no prompt can be completed; replies that came before are kept.
        """
        return self.score_rows([(example, criterion) for example in examples for criterion in self.dimensions])

    def score_rows(self, rows: Sequence[tuple[Example, str]]) -> list[Prediction]:
        """Predictions of (example, criterion) pairs, such as those of a run that failed; see ``score``."""
        asked = [self._row(example, criterion) for example, criterion in rows]
        answers, dropped = self._ask({i: row for i, row in enumerate(asked) if row.status == "ok"})
        self._report(answers)
        return [self._prediction(row, answers.get(i, []), dropped.get(i, row.drop)) for i, row in enumerate(asked)]

    def estimate(self, examples: Sequence[Example]) -> Estimate:
        """What scoring these examples would take; nothing is asked."""
        rows = [self._row(example, criterion) for example in examples for criterion in self.dimensions]
        prompts = [p for row in rows if row.status == "ok" for p in self._prompts(row, row.drop)]
        distinct = list(dict.fromkeys(prompts))
        known = {} if self._backend.joined else cached(self._cache, distinct)
        defaults = inspect.signature(type(self._backend)).parameters
        default = defaults["max_tokens"].default if "max_tokens" in defaults else 1
        length = int(self._options.get("max_tokens", default))
        return estimate([p for p in distinct if p not in known], len(known), length, self._prices)

    @functools.cached_property
    def _cache(self) -> Cache:
        return Cache(self._cache_path, self._backend.identity)

    def _row(self, example: Example, criterion: str) -> _Row:
        text = prompt_text(criterion, self._prompt_language or example.language, self._folder)
        if text.criterion.level == "turn":
            status = usable(example)
        else:
            status = "ok" if any(turn.text.strip() for turn in turns_of(example)) else "empty"
        return _Row(example, criterion, text, status, self._first_drop(text, example) if status == "ok" else 0)

    def _first_drop(self, text: PromptText, example: Example) -> int:
        """How many of the oldest turns the user's limits leave out."""
        most = shown_turns(text, example)
        drop = 0 if self._max_turns is None else max(0, most - self._max_turns)
        while self._max_prompt_tokens is not None and drop < most:
            prompt = self._fill(text, example, drop, 0)
            if approximate_tokens(prompt.system) + approximate_tokens(prompt.user) <= self._max_prompt_tokens:
                break
            drop += 1
        return drop

    def _fill(self, text: PromptText, example: Example, drop: int, sample: int) -> Prompt:
        hints = self._hints.of(example, text.criterion.name, drop)
        wanted = self._mode == "expectation"
        return fill(text, example, self._scale, hints=hints, drop=drop, probabilities=wanted, sample=sample)

    def _prompts(self, row: _Row, drop: int) -> list[Prompt]:
        return [self._fill(row.text, row.example, drop, sample) for sample in range(self._repeats)]

    def _ask(self, rows: Mapping[int, _Row]) -> tuple[dict[int, list[Asked]], dict[int, int]]:
        """Answers by row, and the turns dropped; rows too long for the model are asked again with fewer turns."""
        answers: dict[int, list[Asked]] = {}
        dropped = {i: row.drop for i, row in rows.items()}
        waiting = list(rows)
        while waiting:
            prompts = [p for i in waiting for p in self._prompts(rows[i], dropped[i])]
            found = iter(
                ask(self._backend, prompts, cache=self._cache, is_answer=self._is_answer, replies=self._log_path())
            )
            answers.update({i: [next(found) for _ in range(self._repeats)] for i in waiting})
            waiting = [i for i in waiting if self._shorten(rows[i], answers[i], dropped, i)]
        return answers, dropped

    def _shorten(self, row: _Row, answers: Sequence[Asked], dropped: dict[int, int], i: int) -> bool:
        """Whether a row is to be asked again with a quarter of its turns fewer."""
        left = shown_turns(row.text, row.example) - dropped[i]
        if left < 1 or all(a.completion.finish != "too_long" for a in answers):
            return False
        dropped[i] += -(-left // 4)
        return True

    def _log_path(self) -> Path | None:
        return None if self._backend.joined else self._replies

    def _is_answer(self, prompt: Prompt, completion: Completion) -> bool:
        """Failures, refusals and empty replies are asked again; anything else stays what the model said."""
        if completion.error or completion.finish not in ("stop", "length"):
            return False
        status = judge(completion, self._mode, self._scale, self._min_coverage).status
        return status not in ("failed", "refused", "empty", "unsupported")

    def _prediction(self, row: _Row, asked: Sequence[Asked], drop: int) -> Prediction:
        head = (row.example.id, row.example.language, self.name, row.criterion)
        if not asked:
            return Prediction(*head, None, row.status)
        completions = [each.completion for each in asked]
        found = combine([judge(c, self._mode, self._scale, self._min_coverage) for c in completions])
        detail = dict(self._detail(row, found, completions, drop))
        return Prediction(*head, found.judgement.score, found.judgement.status, detail)

    def _detail(
        self, row: _Row, found: Repeated, completions: Sequence[Completion], drop: int
    ) -> Iterator[tuple[str, Scalar]]:
        """What a reader of the number should know; the same whether replies came from the cache or not."""
        prompt_tokens = sum(c.prompt_tokens for c in completions)
        completion_tokens = sum(c.completion_tokens for c in completions)
        yield "score_mode", self._mode
        yield "prompt_language", row.text.language
        yield "prompt", row.text.version
        yield "n_turns_dropped", drop
        yield "prompt_tokens", prompt_tokens
        yield "completion_tokens", completion_tokens
        yield "reply", (completions[0].text or "")[:_SHOWN]
        if self._blocks:
            hints = self._hints.of(row.example, row.criterion, drop)
            shown = (("evaluator", hints.probability), ("graph", hints.graph))
            yield "blocks", ",".join(name for name, value in shown if value is not None)
        if self._prices is not None:
            yield "money", self._prices.money(prompt_tokens, completion_tokens)
        if found.judgement.reason:
            yield "reason", found.judgement.reason
        if found.judgement.coverage is not None:
            yield "coverage", found.judgement.coverage
        if self._repeats > 1:
            yield "samples", ",".join("" if score is None else f"{score:g}" for score in found.scores)
            yield "spread", found.spread

    def _report(self, answers: Mapping[int, Sequence[Asked]]) -> None:
        new = [a.completion for row in answers.values() for a in row if not a.cached]
        tokens = sum(c.prompt_tokens for c in new), sum(c.completion_tokens for c in new)
        money = "" if self._prices is None else f", {self._prices.money(*tokens):.4f} {self._prices.currency}"
        total = sum(len(row) for row in answers.values())
        log.info("%d replies (%d cached), %d + %d tokens%s", total, total - len(new), *tokens, money)

    def _signature(self) -> str:
        roots = [PROMPTS] if self._folder is None else [PROMPTS, Path(self._folder)]
        languages = sorted({path.name for root in roots for path in root.iterdir() if path.is_dir()})
        texts = [prompt_text(c, code, self._folder) for c in self.dimensions for code in languages]
        parts = {
            "scorer": self.name,
            "criteria": ",".join(self.dimensions),
            "mode": self._mode,
            "scale": f"{self._scale[0]:g}-{self._scale[1]:g}",
            "repeats": self._repeats,
            "prompts": fingerprint([[t.language, t.version] for t in texts]),
            "prompt_language": self._prompt_language or "own",
            "blocks": "+".join(["dialogue", *self._blocks]) + (f"({self._graph_format})" if self._blocks else ""),
            "max_turns": self._max_turns,
            "max_prompt_tokens": self._max_prompt_tokens,
            "min_coverage": self._min_coverage,
        }
        return signature_line({**parts, "mdialeval": version("mdialeval")}) + "|" + self._backend.identity


def _scale(values: Sequence[float]) -> tuple[float, float]:
    try:
        low, high = (float(value) for value in values)
    except (TypeError, ValueError):
        raise ConfigError(f"scorer 'llm': scale must be two numbers such as [1, 5], not {values!r}") from None
    if not low < high:
        raise ConfigError(f"scorer 'llm': scale must go from low to high, not {low:g} to {high:g}")
    return low, high


def _check(
    criteria: Sequence[str],
    mode: str,
    scale: tuple[float, float],
    repeats: int,
    temperature: float,
    min_coverage: float,
) -> None:
    problems = []
    modes = ("number", "expectation", "samples")
    if mode not in modes:
        problems.append(f"scorer 'llm': unknown mode {mode!r}: {nearest(mode, modes)}")
    if not criteria or len(set(criteria)) < len(criteria):
        problems.append("scorer 'llm': criteria must name at least one criterion, each once")
    if repeats < 1 or (mode == "samples" and repeats < 2):
        problems.append(f"scorer 'llm': repeats must be at least {2 if mode == 'samples' else 1}, not {repeats}")
    if mode == "samples" and temperature <= 0:
        problems.append("scorer 'llm': mode samples needs a temperature above 0, or every sample is the same")
    if not 0 <= min_coverage < 1:
        problems.append(f"scorer 'llm': min_coverage must be in [0, 1), not {min_coverage}")
    if problems:
        raise ConfigError(problems)
    if mode == "expectation":
        score_labels(scale)


def _backend_options(backend: str, options: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """The back end's options: its own and, of the shared ones, those it takes.

    Raises:
        ConfigError: lists the options that neither the scorer nor the back end has.
    """
    cls = resolve(_KIND, CHAT_BACKENDS, backend)
    takes = inspect.signature(cls).parameters
    own = [name for name in inspect.signature(LlmScorer).parameters if name != "options"]
    unknown = [key for key in options if key not in takes]
    if unknown:
        raise ConfigError(
            [f"scorer 'llm' with {backend!r} has no option {key!r}: {nearest(key, [*own, *takes])}" for key in unknown]
        )
    return {**accepted(cls, shared), **options}
