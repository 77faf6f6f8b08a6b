"""``rank``: quality estimates, then the best k per cent of every language.

Two passes over shards: the first estimates, all languages of a corpus shard together so that sources are encoded once;
the second holds only numbers in memory and meets the texts again shard by shard.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mdialeval.config.rank import RankConfig
from mdialeval.config.run import RunConfig
from mdialeval.pipeline import Progress, Shard, is_main_rank, run_shards
from mdialeval.rank.columns import ColumnsBuilder
from mdialeval.rank.funnel import Funnel, FunnelStep, Sample, funnels, sample_rows
from mdialeval.rank.protocol import QualityEstimator, create_estimator, truncated
from mdialeval.rank.select import Selection, select
from mdialeval.records import QualityScore, RankedTranslation, Translation
from mdialeval.store import Run, Stage
from mdialeval.tables import read_parquet
from mdialeval.translate.checks import policies
from mdialeval.verbs.translate import shard_of

VERSION = 1
SCORES = "scores"


def rank(config: RunConfig, run: Run, corpus: Stage, translated: Stage, progress: Progress) -> Stage:
    """Estimate and rank all translations; the stage's shards correspond to those of ``translate``.

    Raises:
        ConfigError, BackendError: the estimator cannot be made.
        DataError: a row is too long and ``rank.on_long`` is ``error``.
    """
    section = config.rank
    leave_out = _left_out(config)
    estimator = _estimator(_estimator_key(section))
    settings = {**section.content("options"), "estimator": estimator.identity, "leave_out": list(leave_out)}
    stage = run.stage("rank", VERSION, settings, {"translations": translated.fingerprint})
    if stage.done:
        return stage
    languages = tuple(config.translate.routes)
    factory = _Factory(_estimator_key(section), corpus, translated, languages)
    run_shards(
        stage,
        len(corpus.shards()),
        factory,
        QualityScore,
        execution=config.execution,
        progress=progress,
        table=SCORES,
        label="rank: estimate",
    )
    if not is_main_rank():
        return stage
    rows = _Rows(corpus, translated, stage, languages)
    selection = _selection(rows, section, leave_out, estimator.higher_is_better)
    samples: dict[int, Translation] = {}
    wanted = {row for found in sample_rows(selection).values() for row in found}
    start = 0
    for index in range(len(languages) * len(corpus.shards())):
        records = []
        for offset, translation in enumerate(rows.translations(index)):
            records.append(selection.record(start + offset, translation))
            if start + offset in wanted:
                samples[start + offset] = translation
        start += len(records)
        if not stage.shard(index).exists():
            stage.write(index, records, RankedTranslation)
    found = funnels(selection, samples)
    summary = {
        "rows": len(selection.columns),
        "kept": int(selection.kept().sum()),
        "estimator": estimator.identity,
        "funnels": [dataclasses.asdict(funnel) for funnel in found],
    }
    stage.finish(summary)
    return stage


def funnels_of(stage: Stage) -> list[Funnel]:
    """The funnels that a finished stage wrote into its manifest."""
    return [
        Funnel(
            **{
                **funnel,
                "steps": tuple(
                    FunnelStep(step["reason"], step["n"], tuple(Sample(**sample) for sample in step["samples"]))
                    for step in funnel["steps"]
                ),
                "kept_by_length": tuple(funnel["kept_by_length"]),
            }
        )
        for funnel in stage.summary()["funnels"]
    ]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Translations beside their scores, shard by shard, language by language."""

    corpus: Stage
    translated: Stage
    stage: Stage
    languages: tuple[str, ...]

    def translations(self, index: int) -> Iterator[Translation]:
        return read_parquet(self.translated.shard(index), Translation)

    def scored(self) -> Iterator[tuple[Translation, QualityScore]]:
        count = len(self.corpus.shards())
        for place, language in enumerate(self.languages):
            for index in range(count):
                scores = (
                    s for s in read_parquet(self.stage.shard(index, SCORES), QualityScore) if s.language == language
                )
                yield from zip(self.translations(place * count + index), scores, strict=True)


def _selection(rows: _Rows, section: RankConfig, leave_out: tuple[str, ...], higher_is_better: bool) -> Selection:
    builder = ColumnsBuilder(leave_out, higher_is_better=higher_is_better)
    for translation, score in rows.scored():
        value = math.nan if score.score is None else score.score
        builder.add(translation, value, truncated=score.truncated)
    return select(builder.build(), section.k, key=section.key, context_turns=section.context_turns, ties=section.ties)


def _left_out(config: RunConfig) -> tuple[str, ...]:
    """The flags whose rows are not ranked: as configured, or all whose policy is not to keep them."""
    if config.rank.leave_out is not None:
        return tuple(sorted(config.rank.leave_out))
    return tuple(sorted(name for name, policy in policies(config.translate.on_flag).items() if policy != "keep"))


def _estimator_key(section: RankConfig) -> str:
    shared = {"batch_size": section.batch_size, "device": section.device, "on_long": section.on_long}
    return json.dumps([section.estimator, section.options, shared], sort_keys=True)


@functools.lru_cache(maxsize=1)
def _estimator(key: str) -> QualityEstimator:
    """The estimator behind its name and options as JSON; one stays loaded in a process."""
    name, options, shared = json.loads(key)
    return create_estimator(name, options, **shared)


@dataclass(frozen=True, slots=True)
class _Factory:
    """Loads the estimator once a worker; one shard holds all languages of one corpus shard."""

    key: str
    corpus: Stage
    translated: Stage
    languages: tuple[str, ...]

    def __call__(self) -> Callable[[int], Shard]:
        return functools.partial(self._shard, _estimator(self.key))

    def _shard(self, estimator: QualityEstimator, index: int) -> Shard:
        rows = [
            row
            for language in self.languages
            for row in read_parquet(
                self.translated.shard(shard_of(self.corpus, self.languages, language, index)), Translation
            )
        ]
        scores = estimator.estimate(rows)
        return Shard(
            [
                QualityScore(row.id, row.language, None if math.isnan(score) else score, cut)
                for row, score, cut in zip(rows, scores, truncated(estimator, rows), strict=True)
            ]
        )
