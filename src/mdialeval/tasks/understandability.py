"""Understandability: is the response a valid sentence?  Valid-sentence pairs by perturbation (VUP of USL-H)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import ClassVar

from mdialeval.errors import ConfigError
from mdialeval.records import Dialogue, Example, TrainingPair, Turn, turn_id
from mdialeval.tasks.draws import draw, normal
from mdialeval.tasks.perturb import corrupt, keep_valid, splice
from mdialeval.tasks.tokens import Token, recapitalise, text_of, tokens_of


class Understandability:
    """Each distinct turn once, as it is or perturbed; made on the text of its own language, not on English.

    Examples whose ratings hold ``understandability`` (0 to 1) are taken with that label.  All other texts count as
    valid, whoever said them and however badly they fit their context.

    Args:
        negative: probability that a text of at least ``min_tokens`` tokens is perturbed.
        min_tokens: shorter texts are always positive.
        copies: independent draws from each text.
        strength: of the perturbations, in (0, 1]; 1 as published.
        spliced: share of the negatives that are run on with parts of other texts instead; see ``perturb.splice``.
        vary: draw each strength from U(0.2, 1) times ``strength`` instead: slight damage is learned too.
    """

    dimension: ClassVar[str] = "understandability"

    def __init__(
        self,
        negative: float = 0.5,
        min_tokens: int = 3,
        copies: int = 1,
        strength: float = 1.0,
        vary: bool = False,
        spliced: float = 0.0,
    ) -> None:
        problems = []
        if not 0 < negative < 1:
            problems.append(f"negative is {negative}: it is a probability between 0 and 1")
        if not 0 < strength <= 1:
            problems.append(f"strength is {strength}: it lies in (0, 1]")
        if not 0 <= spliced <= 1:
            problems.append(f"spliced is {spliced}: it is a share between 0 and 1")
        if min_tokens < 2 or copies < 1:
            problems.append("min_tokens must be at least 2 and copies at least 1")
        if problems:
            raise ConfigError([f"task 'understandability': {p}" for p in problems])
        self.negative, self.min_tokens, self.copies = negative, min_tokens, copies
        self.strength, self.vary, self.spliced = strength, vary, spliced

    def pairs(self, items: Iterable[Dialogue | Example], seed: int) -> Iterator[TrainingPair]:
        """One pair a distinct text and copy; a text's draw depends on the text and the seed alone.

        With ``spliced`` it also depends on the set of texts, still not on their order.
        """
        items = list(items)
        others = _others(items) if self.spliced else {}
        seen: set[tuple[str, str]] = set()
        for item in items:
            if isinstance(item, Example) and self.dimension in item.ratings and item.response is not None:
                label = float(item.ratings[self.dimension])
                source = item.source_id
                yield TrainingPair(
                    item.id, item.language, (), item.response, label, "rated", item.group or item.id, source
                )
                continue
            for name, turn, group, source in _texts(item):
                key = (item.language, normal(turn.text))
                if key not in seen and any(c.isalnum() for c in turn.text):
                    seen.add(key)
                    yield from self._draws(
                        name, turn, item.language, group, source, seed, others.get(item.language, [])
                    )

    def _draws(
        self, name: str, turn: Turn, code: str, group: str, source: str | None, seed: int, others: list[str]
    ) -> Iterator[TrainingPair]:
        tokens = tokens_of(turn.text, code)
        done: set[str] = set()
        for copy in range(self.copies):
            rng = draw(seed, "understandability", code, turn.text, copy)
            strength = self.strength * (rng.uniform(0.2, 1.0) if self.vary else 1.0)
            wanted = len(tokens) >= self.min_tokens and rng.random() < self.negative
            broken = self._broken(tokens, code, rng, strength, others) if wanted else None
            kind, kept = keep_valid(tokens, code, rng) if broken is None else broken
            text = text_of(recapitalise(kept, tokens))
            if text not in done:
                done.add(text)
                pair_id = name if self.copies == 1 else f"{name}/{copy}"
                response = Turn(text, turn.speaker)
                yield TrainingPair(pair_id, code, (), response, float(broken is None), kind, group, source)

    def _broken(
        self, tokens: list[Token], code: str, rng: random.Random, strength: float, others: list[str]
    ) -> tuple[str, list[Token]] | None:
        if others and rng.random() < self.spliced:
            more = [tokens_of(rng.choice(others), code) for _ in range(rng.choice((1, 1, 2)))]
            if (joined := splice([tokens, *more], rng)) is not None:
                return "spliced", joined
        return corrupt(tokens, rng, strength)


def _others(items: Iterable[Dialogue | Example]) -> dict[str, list[str]]:
    """Language -> all distinct texts of at least four words, in an order of their own."""
    found: dict[str, set[str]] = {}
    for item in items:
        for _, turn, _, _ in _texts(item):
            if sum(not token.mark for token in tokens_of(turn.text, item.language)) >= 4:
                found.setdefault(item.language, set()).add(turn.text)
    return {code: sorted(texts) for code, texts in found.items()}


def _texts(item: Dialogue | Example) -> Iterator[tuple[str, Turn, str, str | None]]:
    """The turns that are learned from: all of a dialogue, the response of an example; with id, group and source."""
    if isinstance(item, Dialogue):
        original = item.source_id or item.id
        for i, turn in enumerate(item.turns):
            yield turn_id(item.id, i), turn, original, turn_id(original, i) if item.source_id else None
    elif item.response is not None:
        yield item.id, item.response, item.group or item.source_id or item.id, item.source_id
