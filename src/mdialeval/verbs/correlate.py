"""``correlate``: predictions against gold ratings, per language, dimension and scorer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mdialeval.agreement.agree import correlate as agreements_of
from mdialeval.agreement.annotators import SelfAgreement, self_agreements
from mdialeval.agreement.compare import Comparison, compare
from mdialeval.config.run import RunConfig
from mdialeval.pipeline import complete
from mdialeval.records import Agreement, Example, Prediction
from mdialeval.store import Run, Stage
from mdialeval.verbs.fuse import Fused
from mdialeval.verbs.score import Scored, predictions_of

VERSION = 2
COMPARISONS = "comparisons"
REPEATS = "repeats"


def correlate(config: RunConfig, run: Run, scored: Sequence[Scored], fused: Sequence[Fused] = ()) -> Stage:
    """Agreement of every scorer with every rating, and every pair of scorers compared; one shard a data set each.

    A fused score is compared with its members on the held-out part of a data set, which counts as one more.
    """
    inputs = {f"{entry.source.title}: {entry.name}": entry.predictions.content for entry in scored}
    inputs |= {f"{entry.title}: {entry.name}": entry.predictions.content for entry in fused}
    stage = run.stage("correlate", VERSION, {**config.correlate.content(), "seed": config.seed}, inputs)
    complete(stage, lambda: _compare_all(config, stage, scored, fused))
    return stage


def _compared(
    scored: Sequence[Scored], fused: Sequence[Fused]
) -> Iterator[tuple[str, list[Prediction], list[Example]]]:
    """Every data set with its predictions, then the held-out parts that fused scores are checked on."""
    for title, examples in {entry.source.title: entry.examples for entry in scored}.items():
        yield title, list(predictions_of(scored, title)), list(examples.read(Example))
    for entry in fused:
        if entry.predictions.summary()["rows"]:
            yield entry.title, entry.compared(), entry.held_out()


def _compare_all(config: RunConfig, stage: Stage, scored: Sequence[Scored], fused: Sequence[Fused]) -> None:
    for index, (title, predictions, rated) in enumerate(_compared(scored, fused)):
        if not stage.shard(index).exists():
            rows = agreements_of(
                predictions,
                rated,
                dataset=title,
                statistics=config.correlate.statistics,
                resamples=config.correlate.resamples,
                confidence=config.correlate.confidence,
                seed=config.seed,
            )
            stage.write(index, rows, Agreement)
        if not stage.shard(index, COMPARISONS).exists():
            found = compare(
                predictions,
                rated,
                dataset=title,
                resamples=config.correlate.resamples,
                confidence=config.correlate.confidence,
                seed=config.seed,
            )
            stage.write(index, found, Comparison, COMPARISONS)
        if not stage.shard(index, REPEATS).exists():
            stage.write(index, self_agreements(predictions, title), SelfAgreement, REPEATS)
    rows = list(stage.read(Agreement))
    undefined = sorted({row.reason for row in rows if row.value is None})
    stage.finish({"rows": len(rows), "undefined": sum(row.value is None for row in rows), "reasons": undefined})
