"""``score.fuse``: scorers joined to one weighted score, fitted on a part of each rated set and checked on the rest.

The part is drawn by dialogue, across languages, so that no dialogue is on both sides.  What a fused score is compared
with are its members on the same held-out rows, as a data set of its own (``SET, held out for NAME``).
"""

from __future__ import annotations

import functools
import hashlib
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mdialeval.agreement.agree import group_of
from mdialeval.agreement.combine import Fusion, fit_fusion
from mdialeval.agreement.combine import fuse as fused_scores
from mdialeval.config.run import RunConfig
from mdialeval.config.score import FuseConfig
from mdialeval.errors import DataError
from mdialeval.pipeline import complete
from mdialeval.records import Example, Prediction
from mdialeval.store import Run, Stage
from mdialeval.verbs.score import Scored

log = logging.getLogger(__name__)
VERSION = 1


@dataclass(frozen=True, slots=True)
class Fused:
    """A fused score on the held-out part of one data set.

    Attributes:
        title: of the held-out part.
        members: what was joined, on the whole data set.
        predictions: the fused scores, of the held-out part alone.
    """

    title: str
    name: str
    members: tuple[Scored, ...]
    predictions: Stage

    def held_out(self) -> list[Example]:
        """The examples that nothing was fitted on."""
        fitted = set(self.predictions.summary()["dev_groups"])
        return [e for e in self.members[0].examples.read(Example) if group_of(e) not in fitted]

    def compared(self) -> list[Prediction]:
        """The fused scores and those of the members, on the held-out part."""
        kept = {(e.id, e.language) for e in self.held_out()}
        members = (p for m in self.members for p in m.predictions.read(Prediction))
        return [*(p for p in members if (p.example_id, p.language) in kept), *self.predictions.read(Prediction)]


def fuse(config: RunConfig, run: Run, scored: Sequence[Scored]) -> list[Fused]:
    """Every configured fusion on every data set that all its members score."""
    by_title: dict[str, list[Scored]] = {}
    for entry in scored:
        by_title.setdefault(entry.source.title, []).append(entry)
    return [
        _fused(section, title, entries, config.seed, run)
        for section in config.score.fuse
        for title, entries in by_title.items()
        if {entry.name for entry in entries} >= set(section.members)
    ]


def _fused(section: FuseConfig, title: str, scored: Sequence[Scored], seed: int, run: Run) -> Fused:
    members = tuple(entry for entry in scored if not section.members or entry.name in section.members)
    inputs = {entry.name: entry.predictions.content for entry in members}
    inputs["examples"] = members[0].examples.fingerprint
    stage = run.stage("fuse", VERSION, {**section.content("members"), "seed": seed}, inputs)
    complete(stage, functools.partial(_fit_and_fuse, stage, section, members, seed))
    return Fused(f"{title}, held out for {section.name}", section.name, members, stage)


def _fit_and_fuse(stage: Stage, section: FuseConfig, members: Sequence[Scored], seed: int) -> None:
    """Fit one fusion a rated dimension on the development part and write the fused scores of the rest."""
    examples = list(members[0].examples.read(Example))
    development = split((group_of(e) for e in examples), section.dev_share, seed)
    dev = [e for e in examples if group_of(e) in development]
    rest = [e for e in examples if group_of(e) not in development]
    predictions = [p for entry in members for p in entry.predictions.read(Prediction)]
    negative = {(p.scorer, p.dimension) for p in predictions if p.scorer in section.may_be_negative}
    fused: list[Prediction] = []
    weights: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    for dimension in sorted({d for e in examples for d in e.ratings}):
        try:
            fusion = fit_fusion(predictions, dev, dimension, may_be_negative=negative)
        except DataError as error:  # said in the report: the other dimensions may well be fitted
            reasons[dimension] = str(error)
            log.warning("%s: no fused score %r for %s: %s", stage.folder, section.name, dimension, error)
            continue
        weights[dimension] = _weights(fusion)
        fused += fused_scores(predictions, fusion, [e for e in rest if dimension in e.ratings], section.name)
    stage.write(0, fused, Prediction)
    stage.finish(
        {
            "scorer": section.name,
            "rows": len(fused),
            "scored": sum(p.score is not None for p in fused),
            "dev_groups": sorted(development),
            "dev_rows": len(dev),
            "held_out_rows": len(rest),
            "weights": weights,
            "reasons": reasons,
        }
    )


def split(groups: Iterable[str], share: float, seed: int) -> frozenset[str]:
    """The dialogue groups of the development part: a share of all, at least one and never all, drawn by hash.

    >>> sorted(split(["a", "b", "c", "d", "a"], 0.5, 13)) == sorted(split(["d", "c", "b", "a"], 0.5, 13))
    True
    """
    drawn = sorted(set(groups), key=lambda group: hashlib.sha256(f"{seed}\t{group}".encode()).digest())
    return frozenset(drawn[: min(len(drawn) - 1, max(1, round(share * len(drawn))))])


def _weights(fusion: Fusion) -> dict[str, Any]:
    """Source -> its weight, its agreement on the development part and why it has none, as JSON values."""
    return {
        " ".join(source): {"weight": w.weight, "rho": w.rho, "reason": w.reason, "n": fusion.n}
        for source, w in fusion.weights.items()
    }


def signature(fused: Fused) -> str:
    """How a fused score is made, in one line."""
    summary = fused.predictions.summary()
    lines = [
        f"{dimension} = "
        + " + ".join(f"{row['weight']:.3f} {source}" for source, row in weights.items() if row["weight"])
        for dimension, weights in summary["weights"].items()
    ]
    part = f"fitted on {summary['dev_rows']} rows of {len(summary['dev_groups'])} dialogues"
    return "; ".join([*lines, part, "members scaled to [0, 1] by their range there"])
