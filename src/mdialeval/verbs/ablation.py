"""``ablation``: variants of the graph branch, several seeds each, as one table with spread and tested differences.

A cell is one training of one variant with one seed and its scores on every set, and a stage of its own: a run resumes
cell by cell.  Graphs are parsed once for all cells, and what a frozen encoder makes of the texts is kept and shared.
All variants of a seed learn the same pairs.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mdialeval.agreement.agree import Key
from mdialeval.agreement.variants import Measure, differences, figure, measures
from mdialeval.assets import causal_name
from mdialeval.config.run import RunConfig
from mdialeval.config.train import DimensionConfig, GraphConfig, TrainConfig
from mdialeval.errors import ConfigError
from mdialeval.graphs.turns import PairGraphs
from mdialeval.pipeline import Progress, complete
from mdialeval.records import Example, Graph, Prediction, TrainingPair
from mdialeval.signature import fingerprint
from mdialeval.store import FEATURES, Run, Stage
from mdialeval.tables import write_records
from mdialeval.verbs.graphs import TrainingGraphs, parsed
from mdialeval.verbs.leakage import Leakage, find_leakage
from mdialeval.verbs.read import source_stage
from mdialeval.verbs.results import OVER_SEEDS
from mdialeval.verbs.train import EVALUATOR, allowed_pairs, training_items

VERSION = 2
FOLDER = "ablation"


@dataclass(frozen=True, slots=True)
class AblationResult:
    """One figure of one variant, as exported.

    Attributes:
        seed: -1 in the rows that hold the mean over seeds.
        n: rows of the set that count for the measure.
        spread: standard deviation over the seeds, in the rows of seed -1; else None.
    """

    variant: str
    seed: int
    dataset: str
    measure: str
    n: int
    value: float | None
    spread: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class AblationDifference:
    """A variant minus the baseline, mean over seeds; the p-value is corrected for the number of variants (Holm)."""

    variant: str
    baseline: str
    dataset: str
    measure: str
    n: int
    value: float | None
    low: float | None
    high: float | None
    p_value: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Ablation:
    """What an ablation found, how many of its cells are done, and the folder of its tables."""

    results: tuple[AblationResult, ...]
    differences: tuple[AblationDifference, ...]
    cells: tuple[int, int]
    folder: Path


@dataclass(frozen=True, slots=True)
class _Set:
    """A set to score: its examples and their graphs."""

    title: str
    examples: Stage
    graphs: Stage | None

    def inputs(self, with_graphs: bool) -> dict[str, str]:
        found = {f"set {self.title}": self.examples.fingerprint}
        if with_graphs and self.graphs is not None:
            found[f"graphs {self.title}"] = self.graphs.fingerprint
        return found


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What all cells share."""

    dimension: str
    recipe: DimensionConfig
    base: TrainConfig  # with the dimension's own settings; variants differ from it in the graph branch
    variants: Mapping[str, TrainConfig]
    data: tuple[tuple[Stage, Stage | None], ...]  # texts and their graphs
    sets: tuple[_Set, ...]
    leakage: Leakage


def ablation(
    config: RunConfig, run: Run, corpus: Stage | None, progress: Progress, limit: int | None = None
) -> Ablation:
    """Train and score every cell that is not done yet, then compare what is done.

    Args:
        config: the sections ``ablation``, ``train`` (one dimension), ``parse``, ``score`` (its sets) and ``correlate``.
        run: where stages are kept.
        corpus: dialogues to learn from beside ``train.data``, or None.
        progress: where progress is shown.
        limit: do at most this many more cells now; the rest by the same command later.

    Raises:
        ConfigError: no variants, a variant that is no setting of ``train.graph``, no set, or not one dimension.
        DataError: nothing to learn from, or training data that occurs in a set (``train.leakage``).
    """
    ready = _prepare(config, run, corpus, progress)
    stages: dict[tuple[str, int], Stage] = {}
    left = limit
    for seed in config.ablation.seeds:
        cells = {name: _stage(run, ready, variant, seed) for name, variant in ready.variants.items()}
        stages |= {(name, seed): stage for name, stage in cells.items()}
        waiting = {name: stage for name, stage in cells.items() if not stage.done}
        if left is not None:
            waiting = dict(list(waiting.items())[:left])
            left -= len(waiting)
        if waiting:
            _run_cells(config, run, ready, seed, waiting, progress)
    return _compare(config, run, ready, stages)


def _prepare(config: RunConfig, run: Run, corpus: Stage | None, progress: Progress) -> _Prepared:
    section = config.train
    if len(section.dimensions) != 1:
        raise ConfigError(f"ablation compares one dimension; train.dimensions names {', '.join(section.dimensions)}")
    if not config.score.sets:
        raise ConfigError("score.sets: name at least one set that the variants are checked on")
    if corpus is None and not section.data:
        raise ConfigError("train.data: name what the variants learn from")
    ((dimension, recipe),) = section.dimensions.items()
    base = section.of(dimension)
    variants = _variants(config, base)
    with_graphs = any(variant.graph.use != "none" for variant in variants.values())

    def graphs(stage: Stage) -> Stage | None:
        return parsed(config, run, stage, progress) if with_graphs else None

    def read(source: Any) -> Stage:
        return source_stage(source, config.translate.source, config.execution.shard_size, run)

    texts = [*([corpus] if corpus else []), *map(read, section.data)]
    sets = [(source.title, read(source)) for source in config.score.sets]
    leakage = find_leakage(config, run, texts)
    return _Prepared(
        dimension,
        recipe,
        base,
        variants,
        tuple((stage, graphs(stage)) for stage in texts),
        tuple(_Set(title, stage, graphs(stage)) for title, stage in sets),
        leakage,
    )


def _variants(config: RunConfig, base: TrainConfig) -> dict[str, TrainConfig]:
    """The training of each variant.

    Raises:
        ConfigError: lists every variant that is no setting of ``train.graph``, or has graphs and no words beside them.
    """
    if len(config.ablation.variants) < 2:
        raise ConfigError("ablation.variants: name two or more, such as 'text only': {use: none}, gate: {fusion: gate}")
    if base.likelihood:
        raise ConfigError("train.likelihood: an ablation compares ways of reading graphs, without it: leave it out")
    found, problems = {}, []
    for name, changes in config.ablation.variants.items():
        try:
            graph = GraphConfig.model_validate(base.graph.model_dump() | changes)
        except ValidationError as error:
            for e in error.errors():
                place = ".".join(["ablation.variants", name, *map(str, e["loc"])])
                problems.append(f"{place}: {e['msg'].removeprefix('Value error, ')}")
            continue
        if graph.use != "none" and causal_name(base.encoder) is not None:
            problems.append(f"ablation.variants.{name}: encoder {base.encoder} reads no words to fuse graphs with")
        found[name] = base.model_copy(update={"graph": graph})
    if problems:
        raise ConfigError(problems)
    return found


def _stage(run: Run, ready: _Prepared, variant: TrainConfig, seed: int) -> Stage:
    """The stage of one cell; two variants with the same settings share it."""
    with_graphs = variant.graph.use != "none"
    settings = {
        **variant.content("dimensions", "data"),
        **ready.recipe.content("recipe"),
        "dimension": ready.dimension,
        "left_out": fingerprint(sorted(ready.leakage.drop)) if ready.leakage.drop else "",
        "seed": seed,
    }
    inputs: dict[str, str] = {}
    for place, (texts, graphs) in enumerate(ready.data, start=1):
        inputs[f"data {place}"] = texts.fingerprint
        if with_graphs and graphs is not None:
            inputs[f"graphs {place}"] = graphs.fingerprint
    for entry in ready.sets:
        inputs |= entry.inputs(with_graphs)
    return run.stage("ablation", VERSION, settings, inputs)


def _run_cells(
    config: RunConfig, run: Run, ready: _Prepared, seed: int, waiting: Mapping[str, Stage], progress: Progress
) -> None:
    """Train and score some variants with one seed, on the same pairs."""
    from mdialeval.model.features import FrozenFeatures

    pairs = _pairs(ready, seed)
    graphs = TrainingGraphs(config, run, ready.data, None).of_pairs(pairs)
    scored = [
        (list(entry.examples.read(Example)), {g.id: g for g in entry.graphs.read(Graph)} if entry.graphs else {})
        for entry in ready.sets
    ]
    features = FrozenFeatures(run.folder / FEATURES) if _is_frozen(ready.base) else None
    for name, stage in waiting.items():
        with progress.steps(f"ablation: {name}, seed {seed}") as advance:
            _cell(ready, name, stage, pairs, graphs, scored, features, seed, advance)


def _is_frozen(section: TrainConfig) -> bool:
    """Whether nothing in the encoder learns, so that its features are the same in every cell."""
    return section.trainable_layers == 0 and not section.train_embeddings and section.tuning.kind == "full"


def _pairs(ready: _Prepared, seed: int) -> list[TrainingPair]:
    from mdialeval.train.plan import limit_pairs

    items = training_items(None, None, 100.0, [texts for texts, _ in ready.data], frozenset(ready.base.languages))
    pairs = allowed_pairs(ready.dimension, ready.recipe, items, ready.leakage, seed)
    return limit_pairs(pairs, ready.base.max_pairs, seed)


def _cell(
    ready: _Prepared,
    name: str,
    stage: Stage,
    pairs: Sequence[TrainingPair],
    graphs: Mapping[tuple[str, str], PairGraphs],
    scored: Sequence[tuple[Sequence[Example], Mapping[str, Graph]]],
    features: Any,
    seed: int,
    advance: Any,
) -> None:
    """One training and its predictions: one shard a set."""
    if stage.done:  # two variants with the same settings
        return
    from mdialeval.model.evaluator import Evaluator
    from mdialeval.train.evaluators import train_evaluator

    variant, folder = ready.variants[name], stage.folder / EVALUATOR
    given = graphs if variant.graph.use != "none" else None
    summary = train_evaluator(
        pairs, ready.dimension, variant, folder, seed, graphs=given, features=features, on_step=advance
    )
    evaluator = Evaluator.from_pretrained(folder, device=variant.device)
    evaluator.features = features
    for place, (examples, by_turn) in enumerate(scored):
        stage.write(place, evaluator.predict(examples, FOLDER, by_turn), Prediction)

    def finish() -> None:
        files = sorted(p.relative_to(stage.folder).as_posix() for p in folder.rglob("*") if p.is_file())
        counts = {"train_pairs": summary.n_train, "dev_pairs": summary.n_dev, "graphs": summary.graphs}
        stage.finish({**counts, "dev": dict(summary.dev), "warnings": list(summary.warnings)}, files)

    complete(stage, finish)


def _compare(config: RunConfig, run: Run, ready: _Prepared, stages: Mapping[tuple[str, int], Stage]) -> Ablation:
    """Tables of the cells that are done; differences where variant and baseline have the same seeds."""
    section = config.ablation
    done = {cell: stage for cell, stage in stages.items() if stage.done}
    results: list[AblationResult] = []
    compared: list[AblationDifference] = []
    for place, entry in enumerate(ready.sets):
        examples = list(entry.examples.read(Example))
        scores = {cell: _scores(stage, place) for cell, stage in done.items()}
        for measure in measures(entry.title, examples, ready.dimension, section.statistic):
            for name in ready.variants:
                by_seed = {seed: scores[name, seed] for seed in section.seeds if (name, seed) in scores}
                results += _figures(measure, name, by_seed)
            compared += _differences(config, measure, ready.variants, scores)
    folder = run.folder / FOLDER
    write_records(folder / "results.csv", results, AblationResult)
    write_records(folder / "differences.csv", compared, AblationDifference)
    return Ablation(tuple(results), tuple(compared), (len(done), len(stages)), folder)


def _scores(stage: Stage, place: int) -> dict[Key, float]:
    from mdialeval.tables import read_parquet

    rows = read_parquet(stage.shard(place), Prediction)
    return {(row.example_id, row.language): row.score for row in rows if row.score is not None}


def _figures(measure: Measure, name: str, by_seed: Mapping[int, Mapping[Key, float]]) -> list[AblationResult]:
    rows = []
    for seed, scores in by_seed.items():
        value, reason = figure(measure, scores)
        rows.append(AblationResult(name, seed, measure.dataset, measure.name, measure.n, value, None, reason))
    values = [row.value for row in rows if row.value is not None]
    if rows:
        mean = statistics.fmean(values) if values else None
        spread = statistics.stdev(values) if len(values) > 1 else None
        partly = sorted({row.reason for row in rows if row.reason})
        if len(values) < len(rows):
            partly.insert(0, f"defined with {len(values)} of {len(rows)} seeds")
        reason = "; ".join(partly)
        rows.append(AblationResult(name, OVER_SEEDS, measure.dataset, measure.name, measure.n, mean, spread, reason))
    return rows


def _differences(
    config: RunConfig, measure: Measure, names: Iterable[str], scores: Mapping[tuple[str, int], Mapping[Key, float]]
) -> list[AblationDifference]:
    section = config.ablation
    seeds = [seed for seed in section.seeds if all((name, seed) in scores for name in names)]
    if not seeds:
        return []
    found = differences(
        measure,
        {name: [scores[name, seed] for seed in seeds] for name in names},
        section.baseline,
        resamples=config.correlate.resamples,
        confidence=config.correlate.confidence,
        seed=config.seed,
    )
    head = (section.baseline, measure.dataset, measure.name, measure.n)
    return [
        AblationDifference(name, *head, row.value, row.low, row.high, row.p_value, row.reason)
        for name, row in found.items()
    ]


def describe(found: Ablation) -> list[str]:
    """The table for people: variants down, measures across, then the differences to the baseline."""
    means = [row for row in found.results if row.seed == OVER_SEEDS]
    columns = list(dict.fromkeys((row.dataset, row.measure) for row in means))
    cells = {(row.variant, row.dataset, row.measure): row for row in means}
    lines = [f"{found.cells[0]} of {found.cells[1]} cells done; mean ± standard deviation over seeds", ""]
    heads = [f"{dataset}: {measure}" for dataset, measure in columns]
    lines += ["| variant | " + " | ".join(heads) + " |", "|---" * (len(columns) + 1) + "|"]
    for name in dict.fromkeys(row.variant for row in means):
        shown = [_shown(cells.get((name, *column))) for column in columns]
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    if found.differences:
        lines += ["", f"difference to {found.differences[0].baseline} [interval] (p corrected for the variants)", ""]
        lines += ["| variant | " + " | ".join(heads) + " |", "|---" * (len(columns) + 1) + "|"]
        tested = {(row.variant, row.dataset, row.measure): row for row in found.differences}
        for name in dict.fromkeys(row.variant for row in found.differences):
            shown = [_shown_difference(tested.get((name, *column))) for column in columns]
            lines.append(f"| {name} | " + " | ".join(shown) + " |")
    return [*lines, "", f"tables: {found.folder}"]


def _shown(row: AblationResult | None) -> str:
    if row is None or row.value is None:
        return "-"
    return f"{row.value:.3f}" + ("" if row.spread is None else f" ± {row.spread:.3f}")


def _shown_difference(row: AblationDifference | None) -> str:
    if row is None or row.value is None:
        return "-"
    interval = f" [{row.low:+.3f}, {row.high:+.3f}]" if row.low is not None and row.high is not None else ""
    return f"{row.value:+.3f}{interval}" + (f" (p {row.p_value:.3f})" if row.p_value is not None else "")
