"""The records that flow between stages: frozen, slotted, standard library only.

Every stage is a function from a stream of records to a stream of records.  A failure is a status, never a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Scalar = str | int | float | bool | None

TranslationStatus = Literal["ok", "passthrough", "empty", "failed"]
GraphStatus = Literal["ok", "empty", "failed", "truncated", "invalid"]
PredictionStatus = Literal["ok", "truncated", "empty", "failed", "refused", "unparsed", "out_of_range", "unsupported"]

SCORED: frozenset[str] = frozenset({"ok", "truncated"})
"""The prediction statuses that carry a score; every other status has ``score=None``."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One contribution of one speaker.

    Attributes:
        text: what was said, without speaker markup.
        speaker: any label that tells the speakers of one dialogue apart, or None where the corpus does not say.
    """

    text: str
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A conversation in one language.

    Attributes:
        id: unique inside its corpus.
        language: canonical BCP-47 code.
        turns: oldest first, at least one.
        source_id: the English dialogue that this one translates, or None where it is an original.
    """

    id: str
    language: str
    turns: tuple[Turn, ...]
    source_id: str | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """What was rated: a response in its context, or a whole dialogue.

    Attributes:
        id: unique inside its data set and language.
        context: oldest turn first; may be empty.
        response: None where the whole dialogue (``context``) is rated.
        ratings: dimension -> value on the data set's declared scale; may be empty (nothing rated yet).
        group: the English dialogue it comes from; train, dev and test are split by it, across languages.
        system: who produced the response (a system's name, ``human``, or how it was constructed).
        source_id: the English example that this one translates, or None.
    """

    id: str
    language: str
    context: tuple[Turn, ...]
    response: Turn | None
    ratings: Mapping[str, float] = field(default_factory=dict)
    group: str = ""
    system: str = ""
    source_id: str | None = None


@dataclass(frozen=True, slots=True)
class Flag:
    """One finding of a check on a translation: its name, the measured value and a sentence for people."""

    name: str
    value: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Translation:
    """One turn of one item in one target language.

    Attributes:
        id: ``turn_id(item_id, turn)``, the same in every language.
        item_id: the Dialogue or Example it belongs to.
        turn: its index in the item; in an Example the response comes after the context.
        backend: the engine or route that made it, such as ``firefox:en-pt``.
        status: ``passthrough`` where the text has no letters and was not sent to an engine.
        flags: findings of the checks; none means nothing was found.
        back: the back-translation into the source language, or None where none was asked for.
    """

    id: str
    item_id: str
    turn: int
    source: str
    hypothesis: str
    source_language: str
    language: str
    backend: str
    status: TranslationStatus = "ok"
    flags: tuple[Flag, ...] = ()
    back: str | None = None


@dataclass(frozen=True, slots=True)
class QualityScore:
    """One translation's raw quality estimate, before ranking.

    Attributes:
        id: of the translation.
        score: on the estimator's own scale; None where the translation could not be estimated.
        truncated: whether the estimator saw only a part of it.
        reason: why there is no score; empty where there is one.
    """

    id: str
    language: str
    score: float | None
    truncated: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RankedTranslation:
    """A translation with its quality estimate and its place inside its language.

    Attributes:
        score: the ranking key, higher is better, comparable only inside one (estimator, language); None where the
            translation could not be estimated or was left out before ranking.
        rank: 1 is best; None where the row was left out before ranking.
        kept: whether it is among the top k per cent of its language.
        reason: ``kept``, ``below_cut``, or why it was left out (``copied_source``, ``empty``, ``not_a_number`` ...).
    """

    translation: Translation
    score: float | None
    rank: int | None
    kept: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Graph:
    """A semantic graph over one text: AMR of the English pivot, or UCCA.

    Attributes:
        id: the text it belongs to (``turn_id``).
        top: index of the root in ``concepts``; -1 in a graph without nodes.
        concepts: node labels; constants (``-``, ``"Anna"``, ``7``) are nodes too and named in ``constants``.
        edges: (source node, role without colon, target node), roles forward (never ``-of``).
        constants: indices of the nodes that are attribute values.
        status: only ``ok`` and ``truncated`` graphs are ever scored.
        detail: why, where the status is not ``ok``.
    """

    id: str
    top: int
    concepts: tuple[str, ...]
    edges: tuple[tuple[int, str, int], ...]
    constants: tuple[int, ...] = ()
    status: GraphStatus = "ok"
    detail: str = ""


@dataclass(frozen=True, slots=True)
class TrainingPair:
    """One thing an evaluator learns from.

    Attributes:
        context: oldest turn first; empty for understandability.
        label: 1.0 good, 0.0 bad (or a value between, for regression).
        kind: how it was made, such as ``true_next``, ``random``, ``adversarial``, ``word_drop``.
        group: the English dialogue it comes from.
        source_id: the English pair that this one translates, so that graphs of the pivot are found; None in English.
    """

    id: str
    language: str
    context: tuple[Turn, ...]
    response: Turn
    label: float
    kind: str
    group: str
    source_id: str | None = None


@dataclass(frozen=True, slots=True)
class Prediction:
    """One scorer's opinion of one example on one dimension.

    Attributes:
        score: higher is better, on the scorer's own scale; None exactly when ``status`` is not in ``SCORED``.
        detail: what a reader of the number should know (``n_turns_dropped``, ``n_tokens``, ``reply`` ...).
    """

    example_id: str
    language: str
    scorer: str
    dimension: str
    score: float | None
    status: PredictionStatus
    detail: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far one scorer agrees with the gold ratings on one dimension, in one language of one data set.

    Attributes:
        scorer_dimension: what the scorer measures.
        dimension: the rating it is compared with.
        n: rated rows.
        n_scored: rows among them that the scorer scored; ``value`` is computed on these.
        statistic: ``pearson``, ``spearman``, ``kendall_tau_b``, ``acc_eq``, ``auc`` ...
        value: None where it is undefined; ``reason`` then says why (``constant predictions`` ...).
        low, high: bounds of the confidence interval, or None.
        p_value: two-sided, of no association; None where undefined.
    """

    scorer: str
    dataset: str
    language: str
    scorer_dimension: str
    dimension: str
    n: int
    n_scored: int
    statistic: str
    value: float | None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    reason: str = ""


def turn_id(item_id: str, turn: int) -> str:
    """The id of one turn of a dialogue or example.

    >>> turn_id("d7", 3)
    'd7#3'
    """
    return f"{item_id}#{turn}"


def turns_of(item: Dialogue | Example) -> tuple[Turn, ...]:
    """All turns of an item, oldest first; in an example the response comes last."""
    if isinstance(item, Dialogue):
        return item.turns
    return item.context if item.response is None else (*item.context, item.response)
