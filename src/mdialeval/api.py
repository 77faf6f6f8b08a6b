"""The verbs as functions: what the command line calls and a notebook uses.

Every function takes a configuration (a ``RunConfig``, a YAML path or a mapping), runs the stages before it where they are
not finished yet, and returns finished stages, whose rows ``rows`` streams as records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mdialeval import records
from mdialeval.config import RunConfig, load, parse
from mdialeval.errors import DataError
from mdialeval.pipeline import Progress
from mdialeval.store import Run, Stage

Config = RunConfig | str | Path | Mapping[str, Any]

RECORD_OF: Mapping[str, type] = {
    "translate": records.Translation,
    "parse": records.Graph,
    "rank": records.RankedTranslation,
    "score": records.Prediction,
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
    from mdialeval.verbs.translate import translate as verb

    line = _Line(config, quiet)
    return line.outcome(verb(line.config, line.run, line.corpus(), line.progress))


def parse_graphs(config: Config, *, quiet: bool = True) -> Outcome:
    """Parse the English turns of the corpus into semantic graphs."""
    from mdialeval.verbs.parse import parse_graphs as verb

    line = _Line(config, quiet)
    return line.outcome(verb(line.config, line.run, line.corpus(), line.progress))


def rank(config: Config, *, quiet: bool = True) -> Outcome:
    """Estimate translation quality and keep the top k per cent of every language."""
    line = _Line(config, quiet)
    return line.outcome(line.ranked())


def train(config: Config, *, quiet: bool = True) -> Outcome:
    """Train one evaluator a dimension."""
    line = _Line(config, quiet)
    return line.outcome(*line.evaluators().values())


def score(config: Config, *, quiet: bool = True) -> Outcome:
    """Score the rated data sets with every scorer."""
    line = _Line(config, quiet)
    return line.outcome(*(entry.predictions for entry in line.scored()))


def correlate(config: Config, *, quiet: bool = True) -> Outcome:
    """Compare every scorer with the gold ratings, per language and dimension."""
    from mdialeval.verbs.correlate import correlate as verb

    line = _Line(config, quiet)
    return line.outcome(verb(line.config, line.run, line.scored()))


def report(config: Config, *, quiet: bool = True) -> Outcome:
    """Write report.html and the tables of a run."""
    from mdialeval.verbs.correlate import correlate as verb
    from mdialeval.verbs.report import write

    line = _Line(config, quiet)
    scored = line.scored()
    agreements = verb(line.config, line.run, scored)
    path = write(line.config, line.run, line.corpus_or_none(), line.ranked_or_none(), line.evaluators(), scored, agreements)
    return line.outcome(agreements, report=path)


def run(config: Config, *, quiet: bool = True) -> Outcome:
    """Run the whole line, from the corpus to the report; what is finished is not done again."""
    return report(config, quiet=quiet)


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


def read_config(config: Config) -> RunConfig:
    """The validated configuration behind any of its forms."""
    if isinstance(config, RunConfig):
        return config
    return load(config) if isinstance(config, (str, Path)) else parse(config)


class _Line:
    """The straight line of one run: each stage is made when a later one asks for it, once."""

    def __init__(self, config: Config, quiet: bool) -> None:
        from mdialeval.verbs.read import run_of

        self.config = read_config(config)
        self.run: Run = run_of(self.config)
        self.progress = Progress(quiet)
        self._made: dict[str, Any] = {}

    def corpus(self) -> Stage:
        from mdialeval.verbs.read import corpus_stage

        return self._once("corpus", lambda: corpus_stage(self.config, self.run))

    def corpus_or_none(self) -> Stage | None:
        return self.corpus() if self.config.corpus is not None else None

    def ranked(self) -> Stage:
        from mdialeval.verbs.rank import rank as verb
        from mdialeval.verbs.translate import translate as before

        def make() -> Stage:
            translated = before(self.config, self.run, self.corpus(), self.progress)
            return verb(self.config, self.run, self.corpus(), translated, self.progress)

        return self._once("ranked", make)

    def ranked_or_none(self) -> Stage | None:
        return self.ranked() if self.config.corpus is not None and self.config.translate.routes else None

    def evaluators(self) -> dict[str, Stage]:
        from mdialeval.verbs.train import train as verb

        if self.config.corpus is None and not self.config.train.data:
            return {}
        return self._once(
            "evaluators",
            lambda: verb(self.config, self.run, self.corpus_or_none(), self.ranked_or_none(), self.progress),
        )

    def scored(self) -> list[Any]:
        from mdialeval.verbs.score import score as verb

        return self._once("scored", lambda: verb(self.config, self.run, self.evaluators(), self.progress))

    def outcome(self, *stages: Stage, report: Path | None = None) -> Outcome:
        return Outcome(self.run.folder, stages, report)

    def _once(self, name: str, make: Any) -> Any:
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]
