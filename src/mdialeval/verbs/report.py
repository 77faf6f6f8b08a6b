"""``report``: one HTML page and tables from the finished stages of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mdialeval.agreement.annotators import SelfAgreement
from mdialeval.agreement.compare import Comparison
from mdialeval.agreement.systems import SystemRow, by_system
from mdialeval.config.run import RunConfig
from mdialeval.pipeline import is_main_rank
from mdialeval.rank.funnel import Funnel as RankFunnel
from mdialeval.rank.select import KEPT
from mdialeval.records import Agreement, Example, Prediction, RankedTranslation
from mdialeval.report.data import (
    Component,
    Cut,
    Distribution,
    FlagCount,
    Funnel,
    Notice,
    RatedSet,
    ReportData,
    Sample,
    Scatter,
    Signature,
    Step,
    Training,
)
from mdialeval.report.html import PAGE, write_report
from mdialeval.signature import signature_line, versions
from mdialeval.store import Run, Stage
from mdialeval.verbs.correlate import COMPARISONS, REPEATS
from mdialeval.verbs.fuse import Fused
from mdialeval.verbs.fuse import signature as fusion_signature
from mdialeval.verbs.rank import doubts, first_funnels, funnels_of
from mdialeval.verbs.score import Scored

POINTS = 400  # shown of a scatter plot or distribution; ``n`` says how many there are


def write(
    config: RunConfig,
    run: Run,
    corpus: Stage | None,
    translated: Stage | None,
    ranked: Stage | None,
    evaluators: Mapping[str, Stage],
    scored: list[Scored],
    fused: list[Fused],
    agreements: Stage,
) -> Path:
    """Write the report of a run, on the main rank alone; returns the path of its page."""
    if not is_main_rank():
        return run.folder / PAGE
    trainings = tuple(_training(name, stage) for name, stage in evaluators.items())
    data = ReportData(
        title=config.report.title,
        run=config.run,
        summary=_summary(corpus, ranked, scored),
        settings=_settings(config),
        notices=(*_notices(ranked, evaluators), *_fusion_notices(fused)),
        funnels=tuple(_funnel(funnel) for funnel in (funnels_of(ranked) if ranked else [])),
        cuts=tuple(
            Cut(f.language, f.k, f.n_ranked, f.n_out, f.cut_score, f.mean_score)
            for f in (funnels_of(ranked) if ranked else [])
        ),
        flags=tuple(_flags(translated)) if translated else (),
        distributions=tuple(_distributions(ranked)) if ranked else (),
        trainings=trainings,
        sets=(*(_rated_set(s) for s in {s.source.title: s for s in scored}.values()), *map(_held_out, fused)),
        agreements=tuple(agreements.read(Agreement)),
        comparisons=tuple(agreements.read(Comparison, COMPARISONS)),
        repeats=tuple(agreements.read(SelfAgreement, REPEATS)),
        systems=tuple(_systems(scored)),
        scatters=tuple(_scatters(scored)),
        signatures=tuple(_signatures(ranked, scored, fused)),
        components=tuple(_components(config)),
        confidence=config.correlate.confidence,
    )
    return write_report(data, run.folder)


def _summary(corpus: Stage | None, ranked: Stage | None, scored: list[Scored]) -> str:
    parts = []
    if corpus is not None:
        counts = corpus.summary()
        parts.append(f"{counts['rows']:,} English dialogues with {counts['turns']:,} turns")
    if ranked is not None:
        counts = ranked.summary()
        parts.append(f"{counts['kept']:,} of {counts['rows']:,} translated turns kept by quality estimation")
    if scored:
        sets = {s.source.title: s.examples.summary()["rows"] for s in scored}
        parts.append(f"{sum(sets.values()):,} rated examples in {len(sets)} data set{'s' if len(sets) > 1 else ''}")
    return "; ".join(parts) + "." if parts else ""


def _settings(config: RunConfig) -> dict[str, dict[str, Any]]:
    """Section -> key -> value, nested values as text."""
    shown: dict[str, dict[str, Any]] = {"run": {"seed": config.seed, "offline": config.offline}}
    for name in ("translate", "rank", "train", "score", "correlate"):
        values = getattr(config, name).model_dump(mode="json", exclude_defaults=True)
        shown[name] = {k: v if isinstance(v, (str, int, float, bool)) else _text(v) for k, v in values.items()}
    return {name: values for name, values in shown.items() if values}


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k}: {_text(v)}" for k, v in value.items() if k != "path")
    if isinstance(value, list):
        return "; ".join(_text(v) for v in value)
    return str(value)


def _notices(ranked: Stage | None, evaluators: Mapping[str, Stage]) -> Iterable[Notice]:
    """What the stages before scoring warn of; the page itself warns of constant scorers and low coverage."""
    for doubt in doubts(ranked) if ranked else []:
        yield Notice("quality estimation", doubt)
    for funnel in first_funnels(ranked) if ranked else []:
        if funnel.n_truncated:
            text = f"{funnel.n_truncated} of {funnel.n_in} rows are longer than the estimator's window"
            yield Notice(f"QE {funnel.language}", text)
    for name, stage in evaluators.items():
        for warning in (*stage.summary()["warnings"], *stage.summary()["leakage"]):
            yield Notice(f"evaluator {name}", warning)


def _funnel(funnel: RankFunnel) -> Funnel:
    dropped = [step for step in funnel.steps if step.reason != KEPT]
    samples = tuple(
        Sample(step.reason, s.id, s.source, s.hypothesis, s.score) for step in dropped for s in step.samples
    )
    reasons = tuple((step.reason, step.n) for step in dropped)
    return Funnel(funnel.language, funnel.n_in, reasons, funnel.n_out, samples, f"top {funnel.k:g} %")


def _flags(translated: Stage) -> Iterable[FlagCount]:
    for language, counts in translated.summary()["languages"].items():
        total = sum(counts["statuses"].values())
        for flag, rows in counts["flags"].items():
            yield FlagCount(language, flag, rows, total)


def _distributions(ranked: Stage) -> Iterable[Distribution]:
    values: dict[str, list[float]] = {}
    for row in ranked.read(RankedTranslation):
        if row.score is not None:
            values.setdefault(row.translation.language, []).append(row.score)
    cuts = {funnel.language: funnel.cut_score for funnel in reversed(funnels_of(ranked))}
    for language, scores in values.items():
        yield Distribution("quality estimate", language, _spread(scores, 2000), len(scores), cuts.get(language))


def _training(name: str, stage: Stage) -> Training:
    summary = stage.summary()
    best = summary["dev"]
    steps = tuple(Step(h["step"], None, h["loss"], h["value"]) for h in summary["history"])
    figures = tuple((key, summary[key]) for key in ("train_pairs", "dev_pairs", "steps", "turns_dropped", "truncated"))
    return Training(name, steps, best["statistic"], (*figures, (f"best dev {best['statistic']}", best["value"])))


def _rated_set(entry: Scored) -> RatedSet:
    summary = entry.examples.summary()
    labels = entry.source.labels
    return RatedSet(
        entry.source.title,
        "by construction" if labels == "construction" else "human",
        summary["rows"],
        tuple(summary["languages"]),
        scale=", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in sorted(_scales(entry).items())),
    )


def _held_out(fused: Fused) -> RatedSet:
    """The part of a data set that a fused score and its members are compared on."""
    whole, examples = fused.members[0], fused.held_out()
    summary = fused.predictions.summary()
    note = (
        f"Dialogues that nothing was fitted on: the weights of {fused.name} come from the other {summary['dev_rows']} "
        f"rows of {whole.source.title}."
    )
    languages = tuple(sorted({e.language for e in examples}))
    return RatedSet(fused.title, _rated_set(whole).labels, len(examples), languages, note=note)


def _fusion_notices(fused: list[Fused]) -> Iterable[Notice]:
    for entry in fused:
        for dimension, reason in entry.predictions.summary()["reasons"].items():
            yield Notice(entry.title, f"no fused score for {dimension}: {reason}")


def _scales(entry: Scored) -> dict[str, tuple[float, float]]:
    """Dimension -> the lowest and highest rating that occur."""
    found: dict[str, tuple[float, float]] = {}
    for example in entry.examples.read(Example):
        for name, value in example.ratings.items():
            low, high = found.get(name, (value, value))
            found[name] = (min(low, value), max(high, value))
    return found


def _systems(scored: list[Scored]) -> Iterable[SystemRow]:
    for entry in scored:
        yield from by_system(entry.predictions.read(Prediction), entry.examples.read(Example), entry.source.title)


def _scatters(scored: list[Scored]) -> Iterable[Scatter]:
    for entry in scored:
        examples = {(e.id, e.language): e for e in entry.examples.read(Example)}
        cells: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
        for p in entry.predictions.read(Prediction):
            example = examples.get((p.example_id, p.language))
            for dimension, rating in (example.ratings if example else {}).items():
                if p.score is not None and (dimension == p.dimension or p.dimension not in example.ratings):  # type: ignore[union-attr]
                    cells.setdefault((p.language, p.dimension, dimension), []).append((rating, p.score))
        for (language, measured, dimension), points in cells.items():
            shown = _spread(points, POINTS)
            yield Scatter(entry.source.title, language, entry.name, measured, dimension, shown, len(points))


def _spread(values: list[Any], limit: int) -> tuple[Any, ...]:
    """At most ``limit`` of the values, evenly drawn."""
    if len(values) <= limit:
        return tuple(values)
    return tuple(values[i * len(values) // limit] for i in range(limit))


def _signatures(ranked: Stage | None, scored: list[Scored], fused: list[Fused]) -> Iterable[Signature]:
    if ranked is not None:
        yield Signature("quality estimation", ranked.summary()["estimator"])
    for entry in {s.name: s for s in scored}.values():
        yield Signature(entry.name, entry.predictions.summary()["signature"])
    yield from (Signature(entry.title, fusion_signature(entry)) for entry in fused)
    yield Signature("versions", signature_line(versions("torch", "transformers", "unbabel-comet", "numpy", "scipy")))


def _components(config: RunConfig) -> Iterable[Component]:
    """What the numbers rest on, from the assets that ``check`` lists."""
    from mdialeval.verbs.check import check

    for need in check(config):
        asset = need.asset
        if asset.kind in ("model", "package", "program"):
            version = asset.where if asset.kind == "package" else ""
            yield Component(need.verb, asset.name, version, asset.licence, config.offline and asset.kind != "program")
