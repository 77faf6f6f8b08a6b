"""``rank``: quality estimates, then the best k per cent of every language.

Two passes over shards: the first estimates, all languages of a corpus shard together so that sources are encoded once;
the second holds only numbers in memory, of one language at a time, and meets the texts again shard by shard.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mdialeval.config.rank import RankConfig
from mdialeval.config.run import RunConfig
from mdialeval.pipeline import Progress, Shard, complete, run_shards
from mdialeval.rank.columns import EXTENDED, Columns, ColumnsBuilder
from mdialeval.rank.funnel import Funnel, FunnelStep, Sample, funnels, sample_rows
from mdialeval.rank.protocol import QualityEstimator, create_estimator, truncated
from mdialeval.rank.select import BELOW_CUT, KEPT, NOT_A_NUMBER, Selection, select
from mdialeval.records import QualityScore, RankedTranslation, Translation
from mdialeval.store import Run, Stage
from mdialeval.tables import from_table, read_parquet, read_table, schema
from mdialeval.translate.checks import policies

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
    count = len(corpus.shards())
    languages = tuple(
        _Language(code, translated, stage, place * count, count) for place, code in enumerate(config.translate.routes)
    )
    run_shards(
        stage,
        count,
        _Factory(_estimator_key(section), languages),
        QualityScore,
        execution=config.execution,
        progress=progress,
        table=SCORES,
        label="rank: estimate",
    )

    def second_pass() -> None:
        found = [
            funnel
            for language in languages
            for funnel in _rank_language(language, section, leave_out, estimator.higher_is_better)
        ]
        found.sort(key=lambda funnel: section.k.index(funnel.k))  # stable: the languages of each k keep their order
        first = [funnel for funnel in found if funnel.k == section.k[0]]
        stage.finish(
            {
                "rows": sum(funnel.n_in for funnel in first),
                "kept": sum(funnel.n_out for funnel in first),
                "estimator": estimator.identity,
                "funnels": [dataclasses.asdict(funnel) for funnel in found],
            }
        )

    complete(stage, second_pass)
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
class _Language:
    """One language's rows: ``count`` shards of translations from ``first`` on, and the scores of each."""

    code: str
    translated: Stage
    stage: Stage
    first: int
    count: int

    def translations(self, index: int) -> Path:
        return self.translated.shard(self.first + index)

    def scores(self, index: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Score (NaN where there is none) and whether the estimator saw a part only, of each row of a shard."""
        table = read_table(self.stage.shard(index, SCORES), ("language", "score", "truncated"))
        table = table.filter(pc.field("language") == self.code)
        return table["score"].to_numpy(), table["truncated"].to_numpy()


def _rank_language(
    language: _Language, section: RankConfig, leave_out: tuple[str, ...], higher_is_better: bool
) -> list[Funnel]:
    """Write one language's shards; its funnels.  Only numbers of one language at a time are in memory."""
    columns = _columns(language, leave_out, higher_is_better)
    selection = select(columns, section.k, key=section.key, context_turns=section.context_turns, ties=section.ties)
    wanted = sorted(row for found in sample_rows(selection).values() for row in found)
    samples: dict[int, Translation] = {}
    start, there = 0, language.stage.present()
    for index in range(language.count):
        table = read_table(language.translations(index))
        end = start + table.num_rows
        for row in wanted[bisect.bisect_left(wanted, start) : bisect.bisect_left(wanted, end)]:
            (samples[row],) = from_table(table.slice(row - start, 1), Translation)
        if language.first + index not in there:
            language.stage.write_table(language.first + index, _ranked(table, selection, start))
        start = end
    return funnels(selection, samples)


def _columns(language: _Language, leave_out: tuple[str, ...], higher_is_better: bool) -> Columns:
    builder = ColumnsBuilder(leave_out, higher_is_better=higher_is_better)
    for index in range(language.count):
        builder.extend(read_table(language.translations(index), EXTENDED), *language.scores(index))
    return builder.build()


def _ranked(translations: pa.Table, selection: Selection, start: int) -> pa.Table:
    """``Selection.record`` for a whole shard, whose first row has the number ``start``."""
    rows = slice(start, start + translations.num_rows)
    columns, score, rank, kept = selection.columns, selection.score[rows], selection.rank[rows], selection.kept()[rows]
    names = [*columns.reasons, NOT_A_NUMBER, BELOW_CUT, KEPT]
    reason = np.select([rank == 0, np.isnan(score), ~kept], [columns.left_out[rows], -3, -2], -1)
    kind: pa.Schema = schema(RankedTranslation)
    parts = [column.combine_chunks() for column in translations.columns]
    return pa.Table.from_arrays(
        [
            pa.StructArray.from_arrays(parts, fields=list(kind.field("translation").type)),
            pa.array(score, mask=np.isnan(score)),
            pa.array(rank.astype(np.int64), mask=rank == 0),
            pa.array(kept),
            pa.array(np.array(names, object)[reason], pa.string()),
        ],
        schema=kind,
    )


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
    languages: tuple[_Language, ...]

    def __call__(self) -> Callable[[int], Shard]:
        return functools.partial(self._shard, _estimator(self.key))

    def _shard(self, estimator: QualityEstimator, index: int) -> Shard:
        rows = [row for language in self.languages for row in read_parquet(language.translations(index), Translation)]
        scores = estimator.estimate(rows)
        return Shard(
            [
                QualityScore(row.id, row.language, None if math.isnan(score) else score, cut)
                for row, score, cut in zip(rows, scores, truncated(estimator, rows), strict=True)
            ]
        )
