"""Which pairs are learned from, which are held out, and in what order: functions of the data and the seed alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mdialeval.errors import DataError
from mdialeval.model.batches import batches_by_length, bundles
from mdialeval.model.markup import Row
from mdialeval.records import TrainingPair
from mdialeval.tasks.draws import draw

POOL = 32  # batches whose sequences are sorted by length together


class Split(NamedTuple):
    """Pairs to learn from and pairs to select by; no dialogue group is in both."""

    train: list[TrainingPair]
    dev: list[TrainingPair]


def chosen_split(pairs: Sequence[TrainingPair], limit: int | None, share: float, seed: int) -> Split:
    """What an evaluator learns from and what it is selected by; arguments and errors as in the functions below.

    Whatever asks later which pairs it did not learn from calls this too.
    """
    chosen = limit_pairs(pairs, limit, seed)
    check_labels(chosen, "training")
    return split_by_group(chosen, share, seed)


def split_by_group(pairs: Sequence[TrainingPair], share: float, seed: int) -> Split:
    """Hold out whole dialogue groups, in every language at once.

    Raises:
        DataError: fewer than two groups, or a label on one side is missing.
    """
    groups = sorted({pair.group for pair in pairs})
    if len(groups) < 2:
        raise DataError(
            f"{len(pairs)} training pairs come from {len(groups)} dialogue group(s); at least 2 are needed, so that "
            "some can be held out: give every dialogue its own group or id"
        )
    draw(seed, "split").shuffle(groups)
    held = set(groups[: min(len(groups) - 1, max(1, round(share * len(groups))))])
    split = Split([p for p in pairs if p.group not in held], [p for p in pairs if p.group in held])
    check_labels(split.train, "training")
    return split


def check_labels(pairs: Sequence[TrainingPair], what: str) -> None:
    """Refuse data that nothing can be learned from.

    Raises:
        DataError: no pairs, one class only, a label outside [0, 1], or a blank response.
    """
    if not pairs:
        raise DataError(f"there are no {what} pairs")
    for pair in pairs:
        if not 0.0 <= pair.label <= 1.0:
            raise DataError(f"pair {pair.id!r} has the label {pair.label}; labels lie in [0, 1]", field="label")
        if not pair.response.text.strip():
            raise DataError(f"pair {pair.id!r} has an empty response", field="response")
    labels = {pair.label for pair in pairs}
    if len(labels) == 1:
        kinds = ", ".join(sorted({pair.kind for pair in pairs}))
        raise DataError(
            f"all {len(pairs)} {what} pairs have the label {labels.pop():g} ({kinds}): one class only, nothing to "
            "tell apart; check the task's options and the corpus's labels"
        )


def limit_pairs(pairs: Sequence[TrainingPair], limit: int | None, seed: int) -> list[TrainingPair]:
    """At most ``limit`` pairs, whole groups first come in random order, the given order kept.

    Raises:
        DataError: two pairs share an id.
    """
    seen: set[tuple[str, str]] = set()
    for pair in pairs:
        key = (pair.id, pair.language)
        if key in seen:
            raise DataError(f"two training pairs have the id {pair.id!r} in {pair.language}: ids must be unique")
        seen.add(key)
    if limit is None or len(pairs) <= limit:
        return list(pairs)
    by_group: dict[str, list[int]] = {}
    for i, pair in enumerate(pairs):
        by_group.setdefault(pair.group, []).append(i)
    names = sorted(by_group)
    draw(seed, "limit").shuffle(names)
    chosen: list[int] = []
    for name in names:
        chosen += by_group[name]
        if len(chosen) >= limit:
            break
    return [pairs[i] for i in sorted(chosen[:limit])]


def epoch_batches(rows: Sequence[Row], seed: int, epoch: int, batch_size: int, pack: int) -> list[list[list[int]]]:
    """The batches of an epoch, each a list of bundles (rows that share a context): every row once.

    Sequences of like length go together inside pools of some batches, so that little is padded and the order is still
    random.
    """
    rng = draw(seed, "epoch", epoch)
    order = list(range(len(rows)))
    rng.shuffle(order)
    groups = bundles(rows, order, pack)
    rng.shuffle(groups)
    batches: list[list[list[int]]] = []
    per_batch = max(1, batch_size // max(1, round(len(rows) / max(1, len(groups)))))
    for start in range(0, len(groups), per_batch * POOL):
        tail = batches_by_length(rows, groups[start : start + per_batch * POOL], batch_size)
        rng.shuffle(tail)
        batches += tail
    return batches
