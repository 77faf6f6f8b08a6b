"""``benchmark``: strategies x k x seeds on every rated set, as one table with intervals, spread and tested differences.

A cell that fails is reported with its message, and the others go on.
"""

from __future__ import annotations

import itertools
import logging
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mdialeval.agreement.agree import MEAN
from mdialeval.agreement.agree import correlate as agreements_of
from mdialeval.agreement.combine import average
from mdialeval.agreement.compare import Comparison, compare
from mdialeval.config.benchmark import WITH_LIKELIHOOD
from mdialeval.config.run import RunConfig
from mdialeval.config.score import AverageConfig
from mdialeval.devices import use_threads
from mdialeval.errors import ConfigError, DataError, MdialevalError
from mdialeval.files import replace_atomically
from mdialeval.pipeline import Progress, world_size
from mdialeval.records import Agreement, Example, Prediction
from mdialeval.report.data import Curves, Notice, Point, RatedSet, ReportData, Series, Signature
from mdialeval.report.html import write_report
from mdialeval.store import Run, Stage
from mdialeval.tables import write_records
from mdialeval.verbs.average import mean_signature
from mdialeval.verbs.cells import Bench, Cell, Failure, cells, jobs, prepare, run_cell
from mdialeval.verbs.parallel import run_jobs
from mdialeval.verbs.results import (
    OVER_SEEDS,
    CellResult,
    mean_predictions,
    mean_seconds,
    over_seeds,
    result,
    to_latex,
    to_markdown,
)
from mdialeval.verbs.score import Scored, score

log = logging.getLogger(__name__)
FOLDER = "benchmark"


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What a benchmark found: every cell's numbers, tested differences, failed cells, the report beside the tables."""

    results: tuple[CellResult, ...]
    comparisons: tuple[Comparison, ...]
    failures: tuple[Failure, ...]
    report: Path


@dataclass(slots=True)
class _Found:
    """What cells yielded, set by set."""

    scores: dict[str, dict[Cell, list[Prediction]]] = field(default_factory=lambda: defaultdict(dict))
    seconds: dict[Cell, float | None] = field(default_factory=dict)
    signatures: dict[Cell, str] = field(default_factory=dict)
    examples: dict[str, Scored] = field(default_factory=dict)

    def add(self, cell: Cell, scored: Sequence[Scored], took: float | None) -> None:
        """Take in one cell."""
        whole = cell.whole
        before = self.seconds.get(whole, 0.0)
        self.seconds[whole] = None if took is None or before is None else before + took
        for entry in scored:
            self.examples.setdefault(entry.source.title, entry)
            self.scores[entry.source.title].setdefault(whole, []).extend(_of_cell(cell, entry))
            self.signatures[whole] = entry.predictions.summary()["signature"]


def benchmark(
    config: RunConfig, run: Run, corpus: Stage, ranked: Stage | None, progress: Progress, limit: int | None = None
) -> Benchmark:
    """Train and score every cell, then compare.

    Args:
        config: the sections ``benchmark``, ``train``, ``score`` and ``correlate``, checked (``check_strategies``).
        run: where stages are kept.
        corpus: the English originals.
        ranked: their ranked translations; needed by every strategy but ``english``, ``madx`` and ``translate-test``.
        progress: where progress is shown.
        limit: only the first cells.

    Raises:
        MdialevalError: of the first cell, where every cell fails.
    """
    bench, chosen = Bench(config, run, corpus, ranked), cells(config.benchmark, list(config.translate.routes))[:limit]
    found, failures = _run(bench, chosen, progress)
    if len(failures) == len(chosen):
        raise failures[0].error
    alone = config.model_copy(update={"score": config.score.model_copy(update={"average": [], "fuse": []})})
    for entry in score(alone, run, {}, progress) if config.score.scorers else []:
        cell = Cell(entry.name, None, None, config.benchmark.seeds[0])
        found.scores[entry.source.title][cell] = list(entry.predictions.read(Prediction))
        found.signatures[cell] = entry.predictions.summary()["signature"]
    for failure in _add_averages(found, config, {cell.name for cell in chosen}):
        log.error("%s", failure.text)
        failures.append(failure)
    results: list[CellResult] = []
    comparisons: list[Comparison] = []
    agreements: list[Agreement] = []
    for title, entry in found.examples.items():
        rated = list(entry.examples.read(Example))
        scored = {cell: rows for cell, rows in found.scores[title].items() if rows}
        for cell in (cell for cell in found.scores[title] if cell not in scored):
            log.warning("%s: %s scores none of its languages, and has no row there", title, cell.name)
        by_cell = {cell: _agreements(rows, rated, title, config) for cell, rows in scored.items()}
        for cell, rows in by_cell.items():
            results += [result(cell, row, found.seconds.get(cell), found.signatures[cell]) for row in rows]
        for cell, row, spread in over_seeds(by_cell):
            agreements.append(row)
            signature = " / ".join(line for one, line in found.signatures.items() if one.name == cell.name)
            mean = result(cell, row, mean_seconds(found.seconds, cell.name), signature)
            results.append(replace(mean, spread=spread))
        comparisons += compare(
            list(mean_predictions(scored)),
            rated,
            dataset=title,
            statistic=config.benchmark.statistic,
            resamples=config.correlate.resamples,
            confidence=config.correlate.confidence,
            seed=config.seed,
        )
    report = _report(config, run, found, agreements, comparisons, failures)
    _export(report.parent, results, comparisons)
    return Benchmark(tuple(results), tuple(comparisons), tuple(failures), report)


def _run(bench: Bench, chosen: Sequence[Cell], progress: Progress) -> tuple[_Found, list[Failure]]:
    """Make every cell, in this process or in several, and read what they left.

    Raises:
        ConfigError: several processes are asked for under a launcher that starts several already.
    """
    section, found, failures = bench.config.benchmark, _Found(), list[Failure]()
    before = use_threads(section.threads) if section.threads and section.parallel == 1 else None
    if section.parallel > 1:
        if world_size() > 1:
            raise ConfigError(
                "benchmark.parallel starts processes itself: run it without a launcher, or set it to 1 under one"
            )
        prepare(bench, progress)
        work = jobs(bench.config, chosen)
        threads = section.threads or max(1, _cores() // section.parallel)
        with progress.steps(f"{len(chosen)} cells in {len(work)} jobs, {section.parallel} at once") as done:
            failures = run_jobs(bench, work, section.parallel, threads, done)
    failed = {failure.cell for failure in failures}
    for cell in chosen:
        if cell in failed:
            continue
        try:
            found.add(cell, *run_cell(bench, cell, progress))
        except MdialevalError as error:
            failures.append(Failure(cell, error))
    if before is not None:
        use_threads(before)
    for failure in failures:
        log.error("%s", failure.text)
    return found, failures


def _add_averages(found: _Found, config: RunConfig, attempted: set[str]) -> Iterator[Failure]:
    """Add the configured means of strategies and scorers, seed by seed; yields those that cannot be made.

    A mean with a member that was not asked for (``--limit``, or a scorer of other data sets) is left out.
    """
    trained = {cell.name for cell in found.seconds}  # a plain scorer has no seed and joins every seed's mean
    for section, seed in itertools.product(config.score.average, config.benchmark.seeds):
        cell = Cell(section.name, None, None, seed)
        if seed != config.benchmark.seeds[0] and trained.isdisjoint(section.members):
            continue  # nor has a mean of plain scorers
        for title, entry in found.examples.items():
            scorers = {s.name or s.scorer for s in config.score.scorers if not s.sets or title in s.sets}
            if not attempted | scorers >= set(section.members):
                continue
            by_name = {c.name: c for c in found.scores[title] if c.seed == seed or c.name not in trained}
            try:
                if lacking := [member for member in section.members if member not in by_name]:
                    raise DataError(f"there are no scores of {', '.join(lacking)}", title)
                members = [by_name[member] for member in section.members]
                found.scores[title][cell] = _mean_of(found, title, entry, members, section)
            except DataError as error:
                yield Failure(cell, error)
                continue
            found.signatures[cell] = mean_signature([found.signatures[member] for member in members], section.by)
            times = [found.seconds[member] for member in members if member in found.seconds]
            if times:
                found.seconds[cell] = None if None in times else sum(t for t in times if t is not None)


def _mean_of(
    found: _Found, title: str, entry: Scored, members: Sequence[Cell], section: AverageConfig
) -> list[Prediction]:
    """The mean over the languages that all members scored: translate-train, say, has few."""
    predictions = [found.scores[title][member] for member in members]
    languages = set.intersection(*({p.language for p in rows} for rows in predictions))
    if not languages:
        raise DataError(f"no language is scored by all of {', '.join(m.name for m in members)}", title)
    rated = [example for example in entry.examples.read(Example) if example.language in languages]
    return average([p for rows in predictions for p in rows], rated, section.name, section.by, title)


def _cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


def _export(folder: Path, results: Sequence[CellResult], comparisons: Sequence[Comparison]) -> None:
    """Results in four formats, and the tested differences."""
    for ending in ("parquet", "csv"):
        write_records(folder / f"results.{ending}", results, CellResult)
        write_records(folder / f"comparisons.{ending}", comparisons, Comparison)
    for name, text in (("results.md", to_markdown(results)), ("results.tex", to_latex(results))):
        replace_atomically(folder / name, lambda stream, text=text: _put(stream, text))  # type: ignore[misc]


def _put(stream: object, text: str) -> None:
    stream.write(text.encode())  # type: ignore[attr-defined]


def _report(
    config: RunConfig,
    run: Run,
    found: _Found,
    agreements: Sequence[Agreement],
    comparisons: Sequence[Comparison],
    failures: Sequence[Failure],
) -> Path:
    sets = []
    for title, entry in found.examples.items():
        counts = entry.examples.summary()
        labels = "by construction" if entry.source.labels == "construction" else "human"
        sets.append(RatedSet(title, labels, counts["rows"], tuple(counts["languages"])))  # type: ignore[arg-type]
    seeds = len(config.benchmark.seeds)
    data = ReportData(
        title=config.report.title,
        run=config.run,
        summary=f"Strategies compared on {len(sets)} rated set(s); values are means over {seeds} seed(s).",
        notices=tuple(Notice(failure.cell.label, f"failed: {failure.error}") for failure in failures),
        sets=tuple(sets),
        agreements=tuple(agreements),
        comparisons=tuple(comparisons),
        curves=tuple(sweeps(agreements, config.benchmark.statistic)),
        signatures=tuple(Signature(f"{c.name}, seed {c.seed}", line) for c, line in found.signatures.items()),
        statistic=config.benchmark.statistic,
        confidence=config.correlate.confidence,
    )
    return write_report(data, run.folder / FOLDER)


def sweeps(agreements: Iterable[Agreement], statistic: str) -> Iterator[Curves]:
    """Agreement against k, a line a language, for every dimension of every set; the note names each line's best k.

    Evaluators that also read a language model have curves of their own.
    """
    lines: dict[tuple[str, str, str, str], dict[str, dict[float, Point]]] = defaultdict(lambda: defaultdict(dict))
    for row in agreements:
        plain = row.scorer.removesuffix(WITH_LIKELIHOOD)
        k = 100.0 if plain == "multilingual" else _k_of(plain)
        if k is not None and row.statistic == statistic and row.value is not None:
            point = Point(k, row.value, row.low, row.high)
            more = ", with likelihoods" if plain != row.scorer else ""
            lines[row.dataset, row.scorer_dimension, row.dimension, more][row.language][k] = point
    for (dataset, measured, dimension, more), languages in lines.items():
        series = tuple(
            Series(code, tuple(point for _, point in sorted(points.items())))
            for code, points in sorted(languages.items())
            if len(points) > 1
        )
        if series:
            best = ", ".join(f"{line.name} at {max(line.points, key=lambda p: p.y).x:g}" for line in series)
            note = f"Highest: {best}. Chosen on the rows that are shown: check it on others."
            title = f"{dataset}: {measured} against {dimension}{more}"
            yield Curves(title, "k, per cent kept", statistic, series, note)


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
    seconds: dict[str, float | None] = {}
    for r in sorted(found.results, key=lambda r: r.language != MEAN):  # the mean first; a lone language is its own
        if r.seed != OVER_SEEDS or r.statistic not in ("pearson", "spearman", "kendall_tau_b"):
            continue
        spread = f" ± {r.spread:.3f}" if r.spread is not None else ""
        where = "" if r.language == MEAN else f" ({r.language})"
        value = "-" if r.value is None else f"{r.value:.3f}{spread}{where}"
        rows[r.strategy].setdefault(f"{r.dataset}: {r.scorer_dimension}>{r.dimension}", value)
        seconds[r.strategy] = r.train_seconds
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    lines = ["| strategy | " + " | ".join(columns) + " | training |", "|---" * (len(columns) + 2) + "|"]
    for name, row in rows.items():
        taken = seconds[name]
        cells = [*(row.get(c, "-") for c in columns), "" if taken is None else f"{taken:.0f} s"]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return [*lines, *(f"FAILED {failure.text}" for failure in found.failures), f"report: {found.report}"]
