"""``rank``: quality estimates, then the best k per cent of every language.

Two passes over shards: the first estimates, all languages of a corpus shard together so that sources are encoded once;
the second holds only numbers in memory, of one language at a time, and meets the texts again shard by shard.
"""

from __future__ import annotations

import bisect
import dataclasses
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mdialeval.config.rank import COMBINED, RankConfig
from mdialeval.config.run import RunConfig
from mdialeval.errors import DataError
from mdialeval.pipeline import Progress, complete
from mdialeval.rank.columns import EXTENDED, Columns, ColumnsBuilder
from mdialeval.rank.combine import combine, combined_identity
from mdialeval.rank.funnel import Funnel, FunnelStep, Sample, Signal, funnels, sample_rows, signal
from mdialeval.rank.select import BELOW_CUT, KEPT, NOT_A_NUMBER, Selection, select
from mdialeval.records import RankedTranslation, Translation
from mdialeval.store import Run, Stage
from mdialeval.tables import from_table, read_table, schema
from mdialeval.translate.checks import policies
from mdialeval.verbs.estimate import check_estimators, estimate, scores_of

log = logging.getLogger(__name__)

VERSION = 3


class _Part(NamedTuple):
    """One estimator of the ranking with its finished scores."""

    name: str
    weight: float
    scores: Stage

    @property
    def identity(self) -> str:
        return str(self.scores.summary()["estimator"])

    @property
    def higher_is_better(self) -> bool:
        return bool(self.scores.summary()["higher_is_better"])


def rank(
    config: RunConfig, run: Run, corpus: Stage, translated: Stage, progress: Progress, *, strict: bool = False
) -> Stage:
    """Estimate and rank all translations; the stage's shards correspond to those of ``translate``.

    Raises:
        ConfigError, BackendError: an estimator cannot be made.
        DataError: a row is too long and ``rank.on_long`` is ``error``, or ``strict`` is set and there are ``doubts``.
    """
    stage = _ranked_stage(config, run, corpus, translated, progress)
    if strict and (found := doubts(stage)):
        raise DataError("; ".join(found) + " (refused by --strict)", stage.folder)
    return stage


def doubts(stage: Stage) -> list[str]:
    """What makes a finished ranking doubtful, a sentence each: equal scores, rows without a score."""
    found = []
    for funnel in first_funnels(stage):
        if funnel.constant:
            found.append(f"{funnel.language}: all scores are equal, so that the ranking is the input order")
        missing = sum(step.n for step in funnel.steps if step.reason == NOT_A_NUMBER)
        if missing:
            text = f"{funnel.language}: {missing} of {funnel.n_ranked} rows have no score, rank last and are dropped"
            lacking = [f"{s.name} scored {s.n_scored}" for s in funnel.signals if s.n_scored < funnel.n_ranked]
            found.append(f"{text} ({', '.join(lacking)})" if lacking else text)
        found += [
            f"{funnel.language}: the scores of {s.name} are all equal, so that it does not count"
            for s in funnel.signals
            if s.constant
        ]
    return found


def _ranked_stage(config: RunConfig, run: Run, corpus: Stage, translated: Stage, progress: Progress) -> Stage:
    section = config.rank
    check_estimators(section, back=config.translate.back)
    leave_out = _left_out(config)
    parts = [
        _Part(part.title, part.weight, estimate(config, run, corpus, translated, part, progress))
        for part in section.members()
    ]
    signature = _signature(section, parts)
    settings = {
        **section.content("estimator", "options", "parts", "on_long"),
        "estimator": signature,
        "leave_out": list(leave_out),
    }
    inputs = {f"scores {place}": part.scores.fingerprint for place, part in enumerate(parts, start=1)}
    stage = run.stage("rank", VERSION, settings, {"translations": translated.fingerprint, **inputs})
    if stage.done:
        for doubt in doubts(stage):  # said while ranking, too, by ``select``
            log.warning("%s", doubt)
        return stage
    count = len(corpus.shards())
    languages = [
        _Language(code, translated, stage, parts, place * count, count)
        for place, code in enumerate(config.translate.routes)
    ]

    def second_pass() -> None:
        pa.default_memory_pool().release_unused()  # what the estimates took is not needed beside the numbers
        found = [funnel for language in languages for funnel in _rank_language(language, section, leave_out)]
        found.sort(key=lambda funnel: section.k.index(funnel.k))  # stable: the languages of each k keep their order
        stage.finish(_summary(section, signature, parts, found))

    complete(stage, second_pass)
    return stage


def _signature(section: RankConfig, parts: list[_Part]) -> str:
    if section.estimator != COMBINED:
        return parts[0].identity
    return combined_identity([(part.weight, part.identity) for part in parts])


def _summary(section: RankConfig, signature: str, parts: list[_Part], found: list[Funnel]) -> dict[str, Any]:
    first = [funnel for funnel in found if funnel.k == section.k[0]]
    unscored: dict[str, int] = {}
    for part in parts:
        for reason, n in part.scores.summary()["unscored"].items():
            name = f"{part.name}: {reason}" if len(parts) > 1 else reason
            unscored[name] = n
    return {
        "rows": sum(funnel.n_in for funnel in first),
        "kept": sum(funnel.n_out for funnel in first),
        "estimator": signature,
        "unscored": unscored,
        "funnels": [dataclasses.asdict(funnel) for funnel in found],
    }


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
                "signals": tuple(Signal(**signal) for signal in funnel["signals"]),
            }
        )
        for funnel in stage.summary()["funnels"]
    ]


def first_funnels(stage: Stage) -> list[Funnel]:
    """The funnels of the first k, one a language: what does not depend on k is the same in all."""
    found = funnels_of(stage)
    return [funnel for funnel in found if funnel.k == found[0].k]


@dataclass(frozen=True, slots=True)
class _Language:
    """One language's rows: ``count`` shards of translations from ``first`` on, and the scores of each."""

    code: str
    translated: Stage
    stage: Stage
    parts: list[_Part]
    first: int
    count: int

    def translations(self, index: int) -> Path:
        return self.translated.shard(self.first + index)


def _rank_language(language: _Language, section: RankConfig, leave_out: tuple[str, ...]) -> list[Funnel]:
    """Write one language's shards; its funnels.  Only numbers of one language at a time are in memory."""
    columns, signals = _columns(language, section, leave_out)
    selection = select(
        columns,
        section.k,
        key=section.key,
        context_turns=section.context_turns,
        ties=section.ties,
        strata=section.strata,
    )
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
    return [dataclasses.replace(funnel, signals=signals) for funnel in funnels(selection, samples)]


def _columns(
    language: _Language, section: RankConfig, leave_out: tuple[str, ...]
) -> tuple[Columns, tuple[Signal, ...]]:
    """The language's rows with their ranking score, and what each part of a combined score gave."""
    first, *others = language.parts
    places = section.key != "response"
    builder = ColumnsBuilder(leave_out, higher_is_better=first.higher_is_better, places=places)
    more: list[list[NDArray[np.float64]]] = [[] for _ in others]
    for index in range(language.count):
        score, truncated = scores_of(first.scores, index, language.code)
        for part, found in zip(others, more, strict=True):
            values, cut = scores_of(part.scores, index, language.code)
            found.append(values if part.higher_is_better else -values)
            truncated = truncated | cut
        builder.extend(read_table(language.translations(index), EXTENDED), score, truncated)
    columns = builder.build()
    if section.estimator != COMBINED:
        return columns, ()
    signals = {first.name: columns.score} | {
        part.name: np.concatenate([*found, np.empty(0)]) for part, found in zip(others, more, strict=True)
    }
    weights = {part.name: part.weight for part in language.parts}
    described = tuple(signal(columns, name, weights[name], values) for name, values in signals.items())
    return combine(columns, signals, weights), described


def _ranked(translations: pa.Table, selection: Selection, start: int) -> pa.Table:
    """``Selection.record`` for a whole shard, whose first row has the number ``start``."""
    rows = slice(start, start + translations.num_rows)
    columns, score, rank, kept = (
        selection.columns,
        selection.score[rows],
        selection.rank[rows],
        selection.kept(rows=rows),
    )
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
