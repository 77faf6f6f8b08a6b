"""Sensibleness: does the response follow from its context?  Next-sentence pairs with sampled and given negatives.

A positive is a true next turn.  Negatives are drawn from other dialogue groups (``random``), taken from the corpus
where it labels them (``adversarial``, ``random``), and optionally broken true responses (``word_drop`` ...).
"""

from __future__ import annotations

import bisect
import hashlib
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mdialeval.errors import ConfigError, DataError
from mdialeval.records import Dialogue, Example, TrainingPair, Turn, turn_id
from mdialeval.tasks.draws import draw, normal
from mdialeval.tasks.perturb import corrupt
from mdialeval.tasks.tokens import recapitalise, text_of, tokens_of


@dataclass(frozen=True, slots=True)
class _True:
    """A true next turn in its context."""

    id: str
    language: str
    context: tuple[Turn, ...]
    response: Turn
    group: str
    source_id: str | None


class Sensibleness:
    """Next-sentence pairs.

    Args:
        negatives: negatives drawn for each true response of a dialogue or unlabelled example.
        labelled: negatives drawn for each true response of an example that carries a label, whose own corpus may bring
            negatives already.
        given: which labelled negatives of the corpus are used, by the name of the system; all where empty.
        length_matched: draw negatives about as long as the true response, so that length tells nothing.
        broken: probability that a true response is also taken, perturbed, as a further negative.
        strength: of those perturbations, in (0, 1].
        max_context: at most this many turns before the response, the newest.
        threshold: a labelled response rated above it is a true one.
    """

    dimension: ClassVar[str] = "sensibleness"

    def __init__(
        self,
        negatives: int = 1,
        labelled: int = 0,
        given: Sequence[str] = (),
        length_matched: bool = True,
        broken: float = 0.0,
        strength: float = 1.0,
        max_context: int | None = None,
        threshold: float = 0.5,
    ) -> None:
        problems = []
        if negatives < 0 or labelled < 0:
            problems.append("negatives and labelled are counts, 0 or more")
        if not 0 <= broken <= 1:
            problems.append(f"broken is {broken}: it is a probability")
        if not 0 < strength <= 1:
            problems.append(f"strength is {strength}: it lies in (0, 1]")
        if max_context is not None and max_context < 1:
            problems.append("max_context must be at least 1")
        if problems:
            raise ConfigError([f"task 'sensibleness': {p}" for p in problems])
        self.negatives, self.labelled, self.given = negatives, labelled, frozenset(given)
        self.length_matched, self.broken, self.strength = length_matched, broken, strength
        self.max_context, self.threshold = max_context, threshold

    def pairs(self, items: Iterable[Dialogue | Example], seed: int) -> Iterator[TrainingPair]:
        """Positives, each followed by its negatives, then the corpus's own negatives.

        An item's draws depend on the item, the set of responses and the seed, not on the order of the items.

        Raises:
            DataError: negatives are asked for, and no other dialogue group offers a response.
        """
        true: list[tuple[_True, int]] = []
        labelled: list[TrainingPair] = []
        for item in items:
            for found in self._true_turns(item):
                rated = isinstance(item, Example) and self.dimension in item.ratings
                true.append((found, self.labelled if rated else self.negatives))
            if isinstance(item, Example) and (negative := self._given_negative(item)) is not None:
                labelled.append(negative)
        pools = _Pools([t for t, _ in true])
        for found, wanted in true:
            yield _pair(found, found.id, found.response, 1.0, "true_next")
            rng = draw(seed, "sensibleness", found.language, found.id)
            for n, response in enumerate(pools.negatives(found, wanted, rng, self.length_matched)):
                yield _pair(found, f"{found.id}/random-{n}", response, 0.0, "random")
            if rng.random() < self.broken:
                tokens = tokens_of(found.response.text, found.language)
                if (broken := corrupt(tokens, rng, self.strength)) is not None:
                    text = text_of(recapitalise(broken[1], tokens))
                    yield _pair(found, f"{found.id}/broken", Turn(text, found.response.speaker), 0.0, broken[0])
        yield from labelled

    def _true_turns(self, item: Dialogue | Example) -> Iterator[_True]:
        if isinstance(item, Dialogue):
            original = item.source_id or item.id
            for i in range(1, len(item.turns)):
                context, response = self._recent(item.turns[:i]), item.turns[i]
                if response.text.strip():
                    source = turn_id(original, i) if item.source_id else None
                    yield _True(turn_id(item.id, i), item.language, context, response, original, source)
        elif item.response is not None and item.context and item.response.text.strip():
            label = item.ratings.get(self.dimension)
            if label is None or label > self.threshold:
                group = item.group or item.source_id or item.id
                yield _True(item.id, item.language, self._recent(item.context), item.response, group, item.source_id)

    def _given_negative(self, item: Example) -> TrainingPair | None:
        label = item.ratings.get(self.dimension)
        wanted = not self.given or item.system in self.given
        if label is None or label > self.threshold or item.response is None or not wanted:
            return None
        if not item.response.text.strip():
            return None
        group = item.group or item.source_id or item.id
        context = self._recent(item.context)
        kind = item.system or "given"
        return TrainingPair(item.id, item.language, context, item.response, float(label), kind, group, item.source_id)

    def _recent(self, turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
        return turns if self.max_context is None else turns[-self.max_context :]


def _pair(found: _True, pair_id: str, response: Turn, label: float, kind: str) -> TrainingPair:
    source = found.source_id if label else None
    return TrainingPair(pair_id, found.language, found.context, response, label, kind, found.group, source)


class _Pools:
    """All true responses of each language, by length, to draw negatives from."""

    def __init__(self, true: Sequence[_True]) -> None:
        self._answers: dict[tuple[str, tuple[str, ...]], set[str]] = {}
        entries: dict[str, dict[str, tuple[int, str, Turn, set[str]]]] = {}
        for found in true:
            key = normal(found.response.text)
            self._answers.setdefault(_context_key(found), set()).add(key)
            order = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
            entry = (len(found.response.text), order, found.response, {found.group})
            kept = entries.setdefault(found.language, {}).setdefault(key, entry)
            kept[3].add(found.group)
            if found.response.text < kept[2].text:  # one spelling, whichever item came first
                entries[found.language][key] = (len(found.response.text), order, found.response, kept[3])
        self._pools = {
            code: sorted(((n, o, key, t, g) for key, (n, o, t, g) in pool.items()), key=lambda e: e[:2])
            for code, pool in entries.items()
        }

    def negatives(self, found: _True, wanted: int, rng: random.Random, length_matched: bool) -> list[Turn]:
        """Distinct responses of other groups, none equal to a true response of this context."""
        if not wanted:
            return []
        pool = self._pools[found.language]
        answers = self._answers[_context_key(found)]
        said = {normal(turn.text) for turn in found.context}
        chosen: dict[str, Turn] = {}
        place = bisect.bisect_left(pool, (len(found.response.text),))
        width = max(20, 4 * wanted) if length_matched else len(pool)
        while len(chosen) < wanted:
            low = max(0, place - width) if width < len(pool) else 0
            window = [
                (key, turn)
                for _, _, key, turn, groups in pool[low : place + width if width < len(pool) else None]
                if found.group not in groups and key not in answers and key not in said and key not in chosen
            ]
            chosen.update(rng.sample(window, min(wanted - len(chosen), len(window))))
            if width >= len(pool):
                break
            width *= 4
        if not chosen:
            raise DataError(
                f"no negative response can be drawn for {found.id!r} in {found.language}: no other dialogue group "
                "has a different response; give more dialogues, or set the task's option negatives: 0"
            )
        return list(chosen.values())


def _context_key(found: _True) -> tuple[str, tuple[str, ...]]:
    return found.language, tuple(normal(turn.text) for turn in found.context)
