"""``benchmark``: strategies x k x seeds on every rated set, as one table with intervals, spread and tested differences.

A cell is one training and its scores.  Cells share the stages that they have in common (corpus, translations, ranking,
the rated sets), and each is a stage of its own, so that a run resumes cell by cell.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mdialeval.agreement.agree import MEAN
from mdialeval.agreement.agree import correlate as agreements_of
from mdialeval.agreement.compare import Comparison, compare
from mdialeval.config.benchmark import BenchmarkConfig
from mdialeval.config.run import RunConfig
from mdialeval.errors import ConfigError
from mdialeval.pipeline import Progress
from mdialeval.records import Agreement, Example, Prediction
from mdialeval.report.data import Curves, Point, RatedSet, ReportData, Series, Signature
from mdialeval.report.html import write_report
from mdialeval.store import Run, Stage
from mdialeval.tables import write_records
from mdialeval.verbs.score import Scored, score
from mdialeval.verbs.train import train, training_seconds
from mdialeval.verbs.translate_test import into_english

FOLDER = "benchmark"


@dataclass(frozen=True, slots=True)
class Cell:
    """One training: a strategy, its k (top-k only), the language it is for (translate-train only) and a seed."""

    strategy: str
    k: float | None
    language: str | None
    seed: int

    @property
    def name(self) -> str:
        """What tables call it; the same for all seeds and languages of a strategy.

        >>> Cell("top-k", 5.0, None, 13).name, Cell("english", None, None, 13).name
        ('top-5', 'english')
        """
        return self.strategy if self.k is None else f"top-{self.k:g}"


@dataclass(frozen=True, slots=True)
class CellResult:
    """One number of one cell, as exported.

    Attributes:
        spread: standard deviation over the seeds, in the rows of seed -1, which hold the mean over seeds; else None.
    """

    strategy: str
    k: float | None
    seed: int
    dataset: str
    language: str
    scorer_dimension: str
    dimension: str
    statistic: str
    n: int
    n_scored: int
    value: float | None
    low: float | None
    high: float | None
    spread: float | None
    train_seconds: float | None
    signature: str
    reason: str


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What a benchmark found: every cell's numbers, tested differences, the report and the tables' folder."""

    results: tuple[CellResult, ...]
    comparisons: tuple[Comparison, ...]
    report: Path


def cells(section: BenchmarkConfig, languages: Sequence[str]) -> list[Cell]:
    """All cells, cheap baselines of every seed first."""
    found = []
    for seed in section.seeds:
        for strategy in section.strategies:
            if strategy == "top-k":
                found += [Cell(strategy, k, None, seed) for k in section.k]
            elif strategy == "translate-train":
                found += [Cell(strategy, None, language, seed) for language in languages]
            else:
                found.append(Cell(strategy, None, None, seed))
    return found


def benchmark(
    config: RunConfig, run: Run, corpus: Stage, ranked: Stage | None, progress: Progress, limit: int | None = None
) -> Benchmark:
    """Train and score every cell, then compare.

    Args:
        config: the sections ``benchmark``, ``train``, ``score`` and ``correlate``.
        run: where stages are kept.
        corpus: the English originals.
        ranked: their ranked translations; needed by every strategy but ``english`` and ``translate-test``.
        progress: where progress is shown.
        limit: only the first cells.

    Raises:
        ConfigError: a strategy needs translations, or a route into English, that is not there.
    """
    section = config.benchmark
    needy = [s for s in section.strategies if s not in ("english", "translate-test")]
    if needy and ranked is None:
        raise ConfigError(f"benchmark.strategies: {', '.join(needy)} need translations: set translate.routes")
    if "translate-test" in section.strategies and not section.into_english:
        raise ConfigError("benchmark.into_english: translate-test needs a route into English, such as {pt: firefox}")
    chosen = cells(section, list(config.translate.routes))[:limit]
    scores: dict[str, dict[Cell, list[Prediction]]] = defaultdict(dict)
    seconds: dict[Cell, float | None] = {}
    signatures: dict[str, str] = {}
    examples: dict[str, Scored] = {}
    for cell in chosen:
        scored, took = _run_cell(config, cell, run, corpus, ranked, progress)
        whole = replace(cell, language=None)  # the evaluators of single languages are one strategy together
        before = seconds.get(whole, 0.0)
        seconds[whole] = None if took is None or before is None else before + took
        for entry in scored:
            title = entry.source.title
            examples.setdefault(title, entry)
            scores[title].setdefault(whole, []).extend(_of_cell(cell, entry))
            signatures[cell.name] = entry.predictions.summary()["signature"]
    for entry in _baselines(config, run, progress):
        cell = Cell(entry.name, None, None, section.seeds[0])
        scores[entry.source.title][cell] = list(entry.predictions.read(Prediction))
        signatures[entry.name] = entry.predictions.summary()["signature"]
    results: list[CellResult] = []
    comparisons: list[Comparison] = []
    agreements: list[Agreement] = []
    for title, entry in examples.items():
        rated = list(entry.examples.read(Example))
        found = {cell: _agreements(rows, rated, title, config) for cell, rows in scores[title].items()}
        for cell, rows in found.items():
            results += [_result(cell, row, seconds.get(cell), signatures[cell.name]) for row in rows]
        averaged = list(_over_seeds(found))
        agreements += [row for row, _ in averaged]
        results += [_result_of_mean(row, spread, signatures[row.scorer]) for row, spread in averaged]
        comparisons += compare(
            list(_mean_predictions(scores[title])),
            rated,
            dataset=title,
            statistic=section.statistic,
            resamples=config.correlate.resamples,
            confidence=config.correlate.confidence,
            seed=config.seed,
        )
    report = _report(config, run, examples, agreements, comparisons, signatures)
    write_records(report.parent / "results.parquet", results, CellResult)
    write_records(report.parent / "results.csv", results, CellResult)
    return Benchmark(tuple(results), tuple(comparisons), report)


def _run_cell(
    config: RunConfig, cell: Cell, run: Run, corpus: Stage, ranked: Stage | None, progress: Progress
) -> tuple[list[Scored], float | None]:
    """Train a cell's evaluators and score every set with them."""
    chosen = _cell_config(config, cell)
    evaluators = train(chosen, run, corpus, ranked, progress)
    times = [training_seconds(stage) for stage in evaluators.values()]
    total = sum(t for t in times if t is not None) if None not in times else None
    if cell.strategy == "translate-test":
        return into_english(chosen, run, evaluators, progress), total
    return score(chosen, run, evaluators, progress), total


def _cell_config(config: RunConfig, cell: Cell) -> RunConfig:
    """The run's configuration with the cell's languages, k and seed."""
    section = config.train
    languages = {
        "english": [config.translate.source],
        "translate-test": [config.translate.source],
        "translate-train": [cell.language] if cell.language else [],
    }.get(cell.strategy, [])
    k = cell.k if cell.k is not None else 100.0
    dimensions = {name: recipe.model_copy(update={"top_k": k}) for name, recipe in section.dimensions.items()}
    training = section.model_copy(update={"languages": languages, "dimensions": dimensions})
    scoring = config.score.model_copy(update={"scorers": []})
    return config.model_copy(update={"seed": cell.seed, "train": training, "score": scoring})


def _baselines(config: RunConfig, run: Run, progress: Progress) -> list[Scored]:
    return score(config, run, {}, progress) if config.score.scorers else []


def _of_cell(cell: Cell, entry: Scored) -> Iterator[Prediction]:
    """The cell's predictions under its name; one evaluator a language speaks for its own language only."""
    for prediction in entry.predictions.read(Prediction):
        if cell.language is None or prediction.language == cell.language:
            yield replace(prediction, scorer=cell.name)


def _agreements(rows: Sequence[Prediction], rated: Sequence[Example], title: str, config: RunConfig) -> list[Agreement]:
    languages = {row.language for row in rows}
    return agreements_of(
        rows,
        [example for example in rated if example.language in languages],
        dataset=title,
        statistics=[config.benchmark.statistic],
        resamples=config.correlate.resamples,
        confidence=config.correlate.confidence,
        seed=config.seed,
    )


def _over_seeds(found: Mapping[Cell, Sequence[Agreement]]) -> Iterator[tuple[Agreement, float | None]]:
    """Mean over seeds, with the standard deviation; the interval is the mean of the seeds' intervals."""
    groups: dict[tuple[str, ...], list[Agreement]] = defaultdict(list)
    for cell, rows in found.items():
        for row in rows:
            groups[cell.name, row.language, row.scorer_dimension, row.dimension, row.statistic].append(row)
    for (name, *_), rows in groups.items():
        values = [row.value for row in rows if row.value is not None]
        if not values:
            yield replace(rows[0], scorer=name), None
            continue
        lows = [row.low for row in rows if row.low is not None]
        highs = [row.high for row in rows if row.high is not None]
        yield (
            replace(
                rows[0],
                scorer=name,
                value=statistics.fmean(values),
                low=statistics.fmean(lows) if lows else None,
                high=statistics.fmean(highs) if highs else None,
                p_value=rows[0].p_value if len(rows) == 1 else None,
            ),
            statistics.stdev(values) if len(values) > 1 else None,
        )


def _mean_predictions(scores: Mapping[Cell, Sequence[Prediction]]) -> Iterator[Prediction]:
    """One prediction an example and strategy: the mean over seeds, for paired tests."""
    groups: dict[tuple[str, str, str, str], list[Prediction]] = defaultdict(list)
    for cell, rows in scores.items():
        for row in rows:
            groups[cell.name, row.dimension, row.example_id, row.language].append(row)
    for (name, *_), rows in groups.items():
        values = [row.score for row in rows if row.score is not None]
        if len(values) == len(rows):
            yield replace(rows[0], scorer=name, score=statistics.fmean(values))
        else:
            failed = next(row for row in rows if row.score is None)
            yield replace(failed, scorer=name)


def _result(cell: Cell, row: Agreement, seconds: float | None, signature: str) -> CellResult:
    return CellResult(
        cell.name,
        cell.k,
        cell.seed,
        row.dataset,
        row.language,
        row.scorer_dimension,
        row.dimension,
        row.statistic,
        row.n,
        row.n_scored,
        row.value,
        row.low,
        row.high,
        None,
        seconds,
        signature,
        row.reason,
    )


def _result_of_mean(row: Agreement, spread: float | None, signature: str) -> CellResult:
    cell = Cell(row.scorer, None, None, -1)
    return replace(_result(cell, row, None, signature), spread=spread)


def _report(
    config: RunConfig,
    run: Run,
    examples: Mapping[str, Scored],
    agreements: Sequence[Agreement],
    comparisons: Sequence[Comparison],
    signatures: Mapping[str, str],
) -> Path:
    sets = []
    for title, entry in examples.items():
        counts = entry.examples.summary()
        labels = "by construction" if entry.source.labels == "construction" else "human"
        sets.append(RatedSet(title, labels, counts["rows"], tuple(counts["languages"])))  # type: ignore[arg-type]
    seeds = len(config.benchmark.seeds)
    data = ReportData(
        title=config.report.title,
        run=config.run,
        summary=f"Strategies compared on {len(sets)} rated set(s); values are means over {seeds} seed(s).",
        sets=tuple(sets),
        agreements=tuple(agreements),
        comparisons=tuple(comparisons),
        curves=tuple(_sweeps(agreements, config.benchmark.statistic)),
        signatures=tuple(Signature(name, line) for name, line in signatures.items()),
        statistic=config.benchmark.statistic,
        confidence=config.correlate.confidence,
    )
    return write_report(data, run.folder / FOLDER)


def _sweeps(agreements: Iterable[Agreement], statistic: str) -> Iterator[Curves]:
    """Agreement against k, a line a language, for every dimension of every set."""
    lines: dict[tuple[str, str, str], dict[str, dict[float, Agreement]]] = defaultdict(lambda: defaultdict(dict))
    for row in agreements:
        k = 100.0 if row.scorer == "multilingual" else _k_of(row.scorer)
        if k is not None and row.statistic == statistic and row.value is not None:
            lines[row.dataset, row.scorer_dimension, row.dimension][row.language][k] = row
    for (dataset, measured, dimension), languages in lines.items():
        series = tuple(
            Series(code, tuple(Point(k, _value(row), row.low, row.high) for k, row in sorted(points.items())))
            for code, points in sorted(languages.items())
            if len(points) > 1
        )
        if series:
            yield Curves(f"{dataset}: {measured} against {dimension}", "k, per cent kept", statistic, series)


def _value(row: Agreement) -> float:
    return 0.0 if row.value is None else row.value


def _k_of(name: str) -> float | None:
    """
    >>> _k_of("top-5"), _k_of("english")
    (5.0, None)
    """
    text = name.removeprefix("top-")
    return float(text) if text != name and text.replace(".", "", 1).isdecimal() else None


def describe(found: Benchmark) -> list[str]:
    """The table for people: strategies down, the mean over languages of every set and dimension across."""
    rows: dict[str, dict[str, str]] = defaultdict(dict)
    main = [r for r in found.results if r.seed == -1 and r.statistic in ("pearson", "spearman", "kendall_tau_b")]
    for r in sorted(main, key=lambda r: r.language != MEAN):  # the mean first; a single language stands for itself
        spread = f" ± {r.spread:.3f}" if r.spread is not None else ""
        where = "" if r.language == MEAN else f" ({r.language})"
        value = "-" if r.value is None else f"{r.value:.3f}{spread}{where}"
        rows[r.strategy].setdefault(f"{r.dataset}: {r.scorer_dimension}>{r.dimension}", value)
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    lines = ["| strategy | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(row.get(c, "-") for c in columns) + " |" for name, row in rows.items()]
    return [*lines, f"report: {found.report}"]
