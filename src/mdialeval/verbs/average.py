"""``score.average``: several scorers as one, on whole data sets; see ``agreement.combine.average``."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from mdialeval.agreement.combine import Scale, average
from mdialeval.config.run import RunConfig
from mdialeval.config.score import AverageConfig
from mdialeval.pipeline import complete
from mdialeval.records import Example, Prediction
from mdialeval.store import Run, Stage
from mdialeval.verbs.score import Scored, counts

VERSION = 3


def with_averages(config: RunConfig, run: Run, scored: Sequence[Scored]) -> list[Scored]:
    """What was scored, and every configured mean on every data set that all its members score.

    Raises:
        DataError: the members of a mean do not measure the same dimension.
    """
    titles = list(dict.fromkeys(entry.source.title for entry in scored))
    of = {title: {entry.name: entry for entry in scored if entry.source.title == title} for title in titles}
    means = [
        _averaged(section, [of[title][member] for member in section.members], run)
        for section in config.score.average
        for title in titles
        if of[title].keys() >= set(section.members)
    ]
    return [*scored, *means]


def _averaged(section: AverageConfig, members: Sequence[Scored], run: Run) -> Scored:
    first = members[0]
    inputs = {"examples": first.examples.fingerprint, **{m.name: m.predictions.content for m in members}}
    stage = run.stage("average", VERSION, {"name": section.name, "by": section.by}, inputs)
    complete(stage, functools.partial(_average, stage, section, members))
    return Scored(first.source, first.examples, section.name, stage)


def _average(stage: Stage, section: AverageConfig, members: Sequence[Scored]) -> None:
    predictions = [p for member in members for p in member.predictions.read(Prediction)]
    rated, title = list(members[0].examples.read(Example)), members[0].source.title
    rows = average(predictions, rated, section.name, section.by, title)
    stage.write(0, rows, Prediction)
    signature = mean_signature([str(member.predictions.summary()["signature"]) for member in members], section.by)
    stage.finish({"scorer": section.name, "signature": signature, **counts(rows)})


def mean_signature(members: Sequence[str], by: Scale) -> str:
    """How a mean of scorers is made, in one line."""
    what = "ranks" if by == "ranks" else "standard scores"
    return f"mean of {what} among a set's rows of a language: " + " + ".join(f"[{line}]" for line in members)
