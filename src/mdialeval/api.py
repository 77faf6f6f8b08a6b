"""The verbs as functions: what the command line calls and a notebook uses.

Every function takes a configuration (a ``RunConfig``, a YAML path or a mapping), runs the stages before it where they
are not finished yet, and returns finished stages, whose rows ``rows`` streams as records.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from mdialeval import records
from mdialeval.config import RunConfig, load
from mdialeval.config import parse as parse_config
from mdialeval.errors import DataError
from mdialeval.pipeline import Progress
from mdialeval.store import Run, Stage

Config = RunConfig | str | Path | Mapping[str, Any]

Made = TypeVar("Made")

RECORD_OF: Mapping[str, type] = {
    "translate": records.Translation,
    "parse": records.Graph,
    "estimate": records.QualityScore,
    "rank": records.RankedTranslation,
    "score": records.Prediction,
    "average": records.Prediction,
    "fuse": records.Prediction,
    "correlate": records.Agreement,
}
"""What the rows of a verb's stage are; ``read`` names its own in the summary."""


class Outcome(NamedTuple):
    """What a verb leaves: its finished stages, and the report where one was written."""

    run: Path
    stages: tuple[Stage, ...]
    report: Path | None = None


def translate(config: Config, *, quiet: bool = True) -> Outcome:
    """Machine-translate the corpus into every target language, turn by turn, with flags."""
    line = _Line(config, quiet)
    return line.outcome(line.translated())


def parse(config: Config, *, quiet: bool = True) -> Outcome:
    """Parse the English turns of the corpus into semantic graphs."""
    from mdialeval.verbs.parse import parse as verb

    line = _Line(config, quiet)
    return line.outcome(verb(line.config, line.run, line.corpus(), line.progress))


def rank(config: Config, *, quiet: bool = True, strict: bool = False) -> Outcome:
    """Estimate translation quality and keep the top k per cent of every language.

    Args:
        config: with the sections ``corpus``, ``translate`` and ``rank``.
        quiet: no progress bars.
        strict: raise a ``DataError`` where a language's scores are all equal or a ranked row has none; else a warning.
    """
    line = _Line(config, quiet, strict)
    return line.outcome(line.ranked())


def train(config: Config, *, quiet: bool = True) -> Outcome:
    """Train one evaluator a dimension."""
    line = _Line(config, quiet)
    return line.outcome(*line.evaluators().values())


def find_rates(config: Config, *, quiet: bool = True) -> dict[str, Any]:
    """A learning rate sweep for every dimension (``train.rate_finder.RateSweep``); nothing is trained."""
    from mdialeval.verbs.rates import find_rates as verb

    line = _Line(config, quiet)
    return verb(line.config, line.run, line.corpus_or_none(), line.ranked_or_none())


def score(config: Config, *, quiet: bool = True) -> Outcome:
    """Score the rated data sets with every scorer."""
    line = _Line(config, quiet)
    return line.outcome(*(entry.predictions for entry in (*line.scored(), *line.fused())))


def estimate_score(config: Config) -> list[str]:
    """What scoring would ask language models, and its price, one line a scorer and data set; nothing is asked."""
    from mdialeval.verbs.score import estimates

    line = _Line(config, quiet=True)
    return estimates(line.config, line.run)


def correlate(config: Config, *, quiet: bool = True) -> Outcome:
    """Compare every scorer with the gold ratings, per language and dimension."""
    from mdialeval.verbs.correlate import correlate as verb

    line = _Line(config, quiet)
    return line.outcome(verb(line.config, line.run, line.scored(), line.fused()))


def report(config: Config, *, quiet: bool = True) -> Outcome:
    """Write report.html and the tables of a run."""
    return _report(_Line(config, quiet))


def _report(line: _Line) -> Outcome:
    from mdialeval.verbs.correlate import correlate as verb
    from mdialeval.verbs.report import write

    scored, fused = line.scored(), line.fused()
    agreements = verb(line.config, line.run, scored, fused)
    ranked = line.ranked_or_none()
    translated = line.translated() if ranked else None
    path = write(
        line.config, line.run, line.corpus_or_none(), translated, ranked, line.evaluators(), scored, fused, agreements
    )
    return line.outcome(agreements, report=path)


def benchmark(config: Config, *, limit: int | None = None, quiet: bool = True) -> Any:
    """Compare strategies of using translated data (``verbs.benchmark.Benchmark``); resumes cell by cell.

    With ``benchmark.parallel`` above 1 cells run in processes of their own: call it below
    ``if __name__ == "__main__":`` in a script.

    Args:
        config: with a section ``benchmark``.
        limit: only the first cells.
        quiet: no progress bars.
    """
    from mdialeval.verbs.benchmark import benchmark as verb
    from mdialeval.verbs.cells import check_strategies
    from mdialeval.verbs.check import refuse_early

    line = _Line(config, quiet)
    refuse_early(line.config)
    check_strategies(line.config)
    return verb(line.config, line.run, line.corpus(), line.ranked_or_none(), line.progress, limit)


def ablation(config: Config, *, limit: int | None = None, quiet: bool = True) -> Any:
    """Compare variants of the graph branch (``verbs.ablation.Ablation``); resumes cell by cell.

    Args:
        config: with a section ``ablation``.
        limit: at most this many more cells now.
        quiet: no progress bars.
    """
    from mdialeval.verbs.ablation import ablation as verb

    line = _Line(config, quiet)
    return verb(line.config, line.run, line.corpus_or_none(), line.progress, limit)


def run(config: Config, *, quiet: bool = True, strict: bool = False) -> Outcome:
    """Run the whole line, from corpus to report; what is finished is not done again.  ``strict``: see ``rank``."""
    from mdialeval.verbs.check import refuse_early

    line = _Line(config, quiet, strict)
    refuse_early(line.config)
    return _report(line)


def rows(stage: Stage) -> Iterator[Any]:
    """Stream the records of a finished stage.

    Raises:
        DataError: the stage holds no table of records (a trained evaluator).
    """
    if stage.verb == "read":
        return stage.read(getattr(records, stage.summary()["record"]))
    if stage.verb not in RECORD_OF:
        raise DataError(f"a {stage.verb!r} stage holds no rows", stage.folder)
    return stage.read(RECORD_OF[stage.verb])


def export(outcome: Outcome, path: Path) -> int:
    """Write the rows of a verb's stages to one .jsonl, .csv, .tsv or .parquet file; the row count."""
    from mdialeval.tables import write_records

    stages = [stage for stage in outcome.stages if stage.verb in RECORD_OF]
    if not stages:
        raise DataError("this verb leaves no rows to export; its files are in the run folder", outcome.run)
    return write_records(path, (row for stage in stages for row in rows(stage)), RECORD_OF[stages[0].verb])


def export_evaluator(
    folder: str | Path, output: str | Path, to: str = "onnx", rows: str | Path | None = None, reader: str = "jsonl"
) -> Any:
    """Write a trained evaluator for other tools and compare its scores (``verbs.export.Exported``).

    Args:
        folder: of ``train``.
        output: a folder of its own.
        to: ``onnx`` or ``huggingface``.
        rows: a file of rated examples whose scores are compared; a few lines in nine languages where None.
        reader: of that file.
    """
    from mdialeval.verbs.export import export as verb

    return verb(Path(folder), Path(output), to, None if rows is None else Path(rows), reader)


def check(config: Config) -> list[Any]:
    """What a configuration needs and whether it is there (``verbs.check.Need``); loads nothing."""
    from mdialeval.verbs.check import check as verb

    return verb(read_config(config))


def catalogue(kind: str | None = None) -> dict[str, list[tuple[str, str]]]:
    """The names that a configuration can use, by kind, with a line about each."""
    from mdialeval.verbs.catalogue import catalogue as verb

    return verb(kind)


def show(path: str | Path, rows: int = 5) -> list[str]:
    """Lines about a run folder, a stage folder or a Parquet file."""
    from mdialeval.verbs.show import show as verb

    return verb(Path(path), rows)


def faithfulness(
    source: str | Path, target: str | Path | None = None, measure: str = "smatch", **options: Any
) -> list[Any]:
    """Semantic faithfulness of rewrites (``graphs.faithfulness.Faithfulness``), one row a pair.

    Args:
        source: a file of sentence pairs, or, with ``target``, a file of graphs (PENMAN, or UCCA XML).
        target: the other file of graphs.
        measure: smatch, usim or triples.
        **options: of ``verbs.faithfulness.pairs_faithfulness``.
    """
    from mdialeval.verbs.faithfulness import graphs_faithfulness, pairs_faithfulness

    if target is not None:
        return list(graphs_faithfulness(Path(source), Path(target), measure))
    return list(pairs_faithfulness(Path(source), measure, **options))


def evaluate_estimator(gold: str | Path, config: Config, languages: str = "") -> list[Any]:
    """Check the configured quality estimator against human scores (``rank.evaluate.QeEvaluation``), per language.

    Args:
        gold: an MLQE-PE or WMT-QE file, or the common beginning of ``.src``, ``.mt`` and ``.da`` files.
        config: the section ``rank`` names the estimator.
        languages: such as ``en-de``, where the file's name does not tell.
    """
    return list(evaluate(gold, config, languages).languages)


def evaluate(
    gold: str | Path, config: Config, languages: str = "", output: Path | None = None, plot: Path | None = None
) -> Any:
    """``evaluate_estimator`` with the estimator's signature (``verbs.evaluate.Evaluation``), written and drawn.

    Args:
        gold, config, languages: see ``evaluate_estimator``.
        output: writes every figure to this .json, .jsonl, .csv, .tsv or .parquet file.
        plot: draws what is kept at each k against random and oracle selection: a .png, .svg or .pdf file; beside
            ``output``, as .png, where only that is given.
    """
    from mdialeval.verbs.evaluate import evaluate as verb
    from mdialeval.verbs.evaluate import write

    if plot is not None:
        from mdialeval.report.figures import check_ending

        check_ending(plot)
    found = verb(read_config(config), gold, languages)
    write(found, output, plot)
    return found


def audit(
    one: str | Path, other: str | Path, reader: str = "jsonl", other_reader: str = "", threshold: float = 0.8
) -> Any:
    """What two data sets share (``readers.overlap.OverlapReport``): the same dialogue, exactly or nearly."""
    from mdialeval.verbs.audit import audit as verb

    return verb(Path(one), Path(other), reader, other_reader, threshold)


def languages(codes: Sequence[str] = ()) -> list[Any]:
    """Every language's codes and who can translate English into it (``translate.spellings.LanguageRow``)."""
    from mdialeval.translate.spellings import rows as table

    return table(codes)


def datasets(name: str | None = None) -> list[Any]:
    """The corpora that the readers know (``readers.catalogue.Dataset``), or the one of this name."""
    from mdialeval.readers.catalogue import DATASETS
    from mdialeval.readers.catalogue import describe as one

    return [one(name)] if name else list(DATASETS.values())


def read_config(config: Config) -> RunConfig:
    """The validated configuration behind any of its forms."""
    if isinstance(config, RunConfig):
        return config
    return load(config) if isinstance(config, (str, Path)) else parse_config(config)


class _Line:
    """The straight line of one run: each stage is made when a later one asks for it, once."""

    def __init__(self, config: Config, quiet: bool, strict: bool = False) -> None:
        from mdialeval.verbs.read import run_of

        self.strict = strict
        self.config = read_config(config)
        self.run: Run = run_of(self.config)
        self.progress = Progress(quiet)
        self._made: dict[str, Any] = {}

    def corpus(self) -> Stage:
        from mdialeval.verbs.read import corpus_stage

        return self._once("corpus", functools.partial(corpus_stage, self.config, self.run))

    def corpus_or_none(self) -> Stage | None:
        return self.corpus() if self.config.corpus is not None else None

    def translated(self) -> Stage:
        from mdialeval.verbs.translate import translate as verb

        return self._once("translated", functools.partial(verb, self.config, self.run, self.corpus(), self.progress))

    def ranked(self) -> Stage:
        from mdialeval.verbs.rank import rank as verb

        inputs = (self.config, self.run, self.corpus(), self.translated(), self.progress)
        return self._once("ranked", functools.partial(verb, *inputs, strict=self.strict))

    def ranked_or_none(self) -> Stage | None:
        return self.ranked() if self.config.corpus is not None and self.config.translate.routes else None

    def evaluators(self) -> dict[str, Stage]:
        from mdialeval.verbs.train import train as verb

        if self.config.corpus is None and not self.config.train.data:
            return {}
        inputs = (self.config, self.run, self.corpus_or_none(), self.ranked_or_none(), self.progress)
        return self._once("evaluators", functools.partial(verb, *inputs))

    def scored(self) -> list[Any]:
        from mdialeval.verbs.average import with_averages
        from mdialeval.verbs.score import check_scores, trained_names
        from mdialeval.verbs.score import score as verb

        def make() -> list[Any]:
            check_scores(self.config.score, trained_names(self.config))
            scored = verb(self.config, self.run, self.evaluators(), self.progress)
            return with_averages(self.config, self.run, scored)

        return self._once("scored", make)

    def fused(self) -> list[Any]:
        from mdialeval.verbs.fuse import fuse as verb

        return self._once("fused", functools.partial(verb, self.config, self.run, self.scored()))

    def outcome(self, *stages: Stage, report: Path | None = None) -> Outcome:
        return Outcome(self.run.folder, stages, report)

    def _once(self, name: str, make: Callable[[], Made]) -> Made:
        if name not in self._made:
            self._made[name] = make()
        return cast(Made, self._made[name])
