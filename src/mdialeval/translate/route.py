"""Routes: one engine, or a chain such as ``firefox:en-pt > apertium:pt-es``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mdialeval.errors import ConfigError
from mdialeval.languages import canonical, pair
from mdialeval.registry import Asset, check_options, create, resolve
from mdialeval.registry import assets as engine_assets
from mdialeval.translate.protocol import TRANSLATORS, Pairs, Translator

KIND = "translation engine"
_STEP = re.compile(r"(?P<engine>[^\s:]+(?::[A-Za-z_]\w*(?=:|$))?)(?::(?P<pair>[^\s:]+))?")
Options = Mapping[str, Mapping[str, Any]]


class Step(NamedTuple):
    """One engine of a route and the languages between which it translates, as canonical codes."""

    engine: str
    source: str
    target: str


class Leg(NamedTuple):
    """A step with its engine at hand."""

    step: Step
    translator: Translator

    @property
    def identity(self) -> str:
        """Engine, model and version, with the pair."""
        return f"{self.translator.identity}:{self.step.source}-{self.step.target}"


@dataclass(frozen=True, slots=True)
class Route:
    """A chain of engines that is itself a ``Translator``."""

    legs: tuple[Leg, ...]

    @property
    def identity(self) -> str:
        """The identities of its legs."""
        return " > ".join(leg.identity for leg in self.legs)

    @property
    def name(self) -> str:
        """As a person would write it: ``firefox:en-pt > apertium:pt-es``."""
        return " > ".join(f"{leg.step.engine}:{leg.step.source}-{leg.step.target}" for leg in self.legs)

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Translate through every leg in turn."""
        if (source, target) != (self.legs[0].step.source, self.legs[-1].step.target):
            raise ConfigError(f"the route {self.name} does not translate {source}-{target}")
        result = list(texts)
        for leg in self.legs:
            result = leg.translator.translate(result, leg.step.source, leg.step.target)
        return result


def parse_route(text: str, source: str, target: str) -> tuple[Step, ...]:
    """The steps of a route.  A pair may be left out where its neighbours make it plain.

    Raises:
        ConfigError: the chain is empty, does not join up, or leaves a language open.

    >>> parse_route("firefox", "en", "pt")
    (Step(engine='firefox', source='en', target='pt'),)
    >>> [s[1:] for s in parse_route("firefox:en-pt > apertium", "en", "es")]
    [('en', 'pt'), ('pt', 'es')]
    """
    engines: list[str] = []
    pairs: list[tuple[str, str] | None] = []
    for part in text.split(">"):
        match = _STEP.fullmatch(part.strip())
        if match is None:
            raise ConfigError(
                f"route {text!r}: write it as 'engine' or 'engine:en-pt > engine:pt-es', not {part.strip()!r}"
            )
        engines.append(match["engine"])
        pairs.append(pair(match["pair"]) if match["pair"] else None)
    source, target = canonical(source), canonical(target)
    steps: list[Step] = []
    for i, (engine, known) in enumerate(zip(engines, pairs, strict=True)):
        before = source if i == 0 else steps[-1].target
        after = pairs[i + 1] if i + 1 < len(pairs) else (target, "")
        if known is None and after is None:
            raise ConfigError(
                f"route {text!r}: say between which languages {engine} translates, as in {engine}:{before}-xx"
            )
        here = known or (before, after[0] if after else "")
        if here[0] != before:
            whence = "the corpus is" if i == 0 else f"{steps[-1].engine} gives"
            raise ConfigError(f"route {text!r}: {engine} takes {here[0]!r}, but {whence} {before!r}")
        steps.append(Step(engine, *here))
    if steps[-1].target != target:
        raise ConfigError(f"route {text!r}: it ends in {steps[-1].target!r}, but {target!r} was asked for")
    return tuple(steps)


def make_route(text: str, source: str, target: str, options: Options | None = None) -> Route:
    """The ``Translator`` of one route; see ``make_routes``."""
    return make_routes({target: text}, source, options)[canonical(target)]


def make_routes(routes: Mapping[str, str], source: str, options: Options | None = None) -> dict[str, Route]:
    """The ``Translator`` of each target language; engines that occur in several routes are made once.

    Args:
        routes: target language -> route.
        options: engine -> its keyword options.

    Raises:
        ConfigError: everything that is wrong with the routes, found before any engine is made.
    """
    steps = {canonical(target): parse_route(text, source, target) for target, text in routes.items()}
    problems = check_routes(routes, source, options)
    if problems:
        raise ConfigError(problems)
    made: dict[str, Translator] = {}
    for step in (step for chain in steps.values() for step in chain):
        if step.engine not in made:
            made[step.engine] = create(KIND, TRANSLATORS, step.engine, (options or {}).get(step.engine))
    return {target: Route(tuple(Leg(s, made[s.engine]) for s in chain)) for target, chain in steps.items()}


def check_routes(routes: Mapping[str, str], source: str, options: Options | None = None) -> list[str]:
    """Every problem of a set of routes, one sentence each, without making an engine."""
    problems: list[str] = []
    for target, text in routes.items():
        try:
            for step in parse_route(text, source, target):
                problems += _unsupported(step, (options or {}).get(step.engine, {}))
        except ConfigError as error:
            problems += error.problems
    return list(dict.fromkeys(problems))


def route_assets(text: str, source: str, target: str, options: Options | None = None) -> list[Asset]:
    """What the engines of a route need, without loading them."""
    found: list[Asset] = []
    for step in parse_route(text, source, target):
        listed = engine_assets(KIND, TRANSLATORS, step.engine, (options or {}).get(step.engine))
        found += [asset for asset in listed if asset not in found]
    return found


def known_pairs(engine: str, options: Mapping[str, Any] | None = None) -> Pairs | None:
    """The language pairs of an engine as far as it can tell without loading anything; None where its model decides."""
    cls = resolve(KIND, TRANSLATORS, engine)
    listed = getattr(cls, "pairs", None)
    return listed(**(options or {})) if listed is not None else None


def _unsupported(step: Step, options: Mapping[str, Any]) -> list[str]:
    check_options(KIND, step.engine, resolve(KIND, TRANSLATORS, step.engine), options)
    pairs = known_pairs(step.engine, options)
    if pairs is None or (step.source, step.target) in pairs:
        return []
    near = sorted(p for p in pairs if p[0] == step.source) or sorted(p for p in pairs if p[1] == step.target)
    there = ", ".join(f"{s}-{t}" for s, t in near) or "none for these languages"
    return [
        f"{step.engine} has no {step.source}-{step.target} on this machine; it has {there}: use one of them, or a route"
    ]
