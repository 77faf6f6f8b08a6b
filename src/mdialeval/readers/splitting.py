"""Train and dev parts: split by dialogue group across languages, without pairs that teach nothing."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from mdialeval.errors import ConfigError
from mdialeval.records import Example, TrainingPair

logger = logging.getLogger(__name__)
Pair = TypeVar("Pair", Example, TrainingPair)


class GroupSplit(NamedTuple):
    """Which groups train and which are held out."""

    train: frozenset[str]
    dev: frozenset[str]


@dataclass(frozen=True, slots=True)
class PairSplit(Generic[Pair]):
    """Pairs by part, and how many were rejected.

    Attributes:
        blank: pairs whose response, or whose whole context, has no text.
        identical: pairs whose context and response are the same text.
    """

    train: tuple[Pair, ...]
    dev: tuple[Pair, ...]
    blank: int
    identical: int


def split_groups(groups: Iterable[str], dev_share: float, seed: int) -> GroupSplit:
    """Split dialogue groups: a function of their names, the share and the seed, not of their order.

    Args:
        groups: with or without repeats.
        dev_share: share of the groups to hold out, above 0 and below 1; at least one group, and one is left to train.
        seed: another seed, another split.

    Raises:
        ConfigError: a share outside its range, or fewer than two groups.

    >>> split = split_groups([f"d{i}" for i in range(10)], 0.2, seed=13)
    >>> len(split.train), len(split.dev), split == split_groups([f"d{9 - i}" for i in range(10)], 0.2, seed=13)
    (8, 2, True)
    """
    if not 0 < dev_share < 1:
        raise ConfigError(f"dev_share: above 0 and below 1, not {dev_share!r}")
    names = set(groups)
    if len(names) < 2:
        raise ConfigError(f"{len(names)} dialogue group cannot be split into train and dev: more dialogues are needed")
    ordered = sorted(names, key=lambda name: hashlib.sha256(f"{seed}:{name}".encode()).digest())
    held_out = min(max(1, round(len(ordered) * dev_share)), len(ordered) - 1)
    return GroupSplit(frozenset(ordered[held_out:]), frozenset(ordered[:held_out]))


def split_pairs(pairs: Sequence[Pair], dev_share: float, seed: int) -> PairSplit[Pair]:
    """Split pairs by their groups; blank pairs and pairs with identical sides are rejected and counted.

    Raises:
        ConfigError: see ``split_groups``.
    """
    kept: list[Pair] = []
    rejected = {"blank": 0, "identical": 0}
    for pair in pairs:
        why = _fault(pair)
        if why:
            rejected[why] += 1
        else:
            kept.append(pair)
    if any(rejected.values()):
        logger.warning("%d blank pairs and %d with identical sides left out", *rejected.values())
    split = split_groups((pair.group for pair in kept), dev_share, seed)
    train = tuple(pair for pair in kept if pair.group in split.train)
    dev = tuple(pair for pair in kept if pair.group in split.dev)
    return PairSplit(train, dev, rejected["blank"], rejected["identical"])


def _fault(pair: Example | TrainingPair) -> str:
    response = "" if pair.response is None else _plain(pair.response.text)
    context = _plain(" ".join(turn.text for turn in pair.context))
    if (not response and pair.response is not None) or (pair.context and not context):
        return "blank"
    return "identical" if response and context == response else ""


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
