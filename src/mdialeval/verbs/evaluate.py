"""``rank --evaluate``: the configured estimator, or combined signal, against human scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mdialeval.config.rank import COMBINED, RankConfig
from mdialeval.config.run import RunConfig
from mdialeval.files import write_json
from mdialeval.languages import pair
from mdialeval.rank.columns import ColumnsBuilder
from mdialeval.rank.combine import combine, combined_identity
from mdialeval.rank.evaluate import QeEvaluation, evaluate_estimator, evaluate_scores
from mdialeval.rank.gold import Gold, read_gold
from mdialeval.report.kept import plot_kept
from mdialeval.tables import write_records
from mdialeval.verbs.estimate import check_estimators, load_estimator


class Evaluation(NamedTuple):
    """A meta-evaluation, one entry a language, and the signature of the estimator."""

    languages: list[QeEvaluation]
    estimator: str


def evaluate(config: RunConfig, path: str | Path, languages: str = "") -> Evaluation:
    """Score the rows of a gold file and compare, one language at a time.

    Args:
        config: the section ``rank`` names the estimator.
        path: an MLQE-PE or WMT-QE file, or the common beginning of ``.src``, ``.mt`` and ``.da`` files.
        languages: such as ``en-de``, where the file's name does not tell.

    Raises:
        ConfigError: the estimator cannot be made, or needs back-translations, which no gold file has.
        DataError: the file is wrong.
    """
    section = config.rank
    check_estimators(section, back=False)
    source, target = pair(languages) if languages else (None, None)
    gold = read_gold(path, target, source)
    if section.estimator == COMBINED:
        return _combined(section, gold)
    (part,) = section.members()
    estimator = load_estimator(section, part)
    return Evaluation(evaluate_estimator(estimator, gold), estimator.identity)


def _combined(section: RankConfig, gold: list[Gold]) -> Evaluation:
    """The combined score of every row, from one estimator after the other."""
    rows = [entry.translation for entry in gold]
    builder = ColumnsBuilder(())
    for row in rows:
        builder.add(row, 0.0)
    signals, identities = {}, []
    for part in section.parts:
        estimator = load_estimator(section, part)
        signals[part.title] = np.array(estimator.estimate(rows)) * (1.0 if estimator.higher_is_better else -1.0)
        identities.append((part.weight, estimator.identity))
    scores = combine(builder.build(), signals, {part.title: part.weight for part in section.parts}).score
    return Evaluation(evaluate_scores(scores.tolist(), gold), combined_identity(identities))


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """One figure of a meta-evaluation as a line of a table.

    Attributes:
        n, n_scored: gold rows of the language, and those that have a score.
        figure: ``pearson``, ``spearman``, ``kendall_tau_b``, or ``kept`` (mean gold score of the best k per cent).
        k, rows: of ``kept``: per cent and rows kept.
        value, low, high: with a 95 % bootstrap interval; None where undefined, and ``reason`` says why.
        random, random_low, random_high: of ``kept``: a random choice as large, and the range of 95 % of such choices.
        oracle: of ``kept``: the best choice as large.
        estimator: how the scores were made.
    """

    language: str
    n: int
    n_scored: int
    figure: str
    k: float | None
    rows: int | None
    value: float | None
    low: float | None
    high: float | None
    random: float | None
    random_low: float | None
    random_high: float | None
    oracle: float | None
    reason: str
    estimator: str


def evaluation_rows(found: Sequence[QeEvaluation], estimator: str) -> list[EvaluationRow]:
    """The evaluations as lines of one table: every correlation and every k of every language."""
    rows = []
    for e in found:
        start = (e.language, e.n, e.n_scored)
        nothing = (None, None, None, None)
        rows += [
            EvaluationRow(*start, c.statistic, None, None, c.value, c.low, c.high, *nothing, c.reason, estimator)
            for c in e.correlations
        ]
        rows += [
            EvaluationRow(
                *start, "kept", p.k, p.n, p.mean, p.low, p.high,
                p.random, p.random_low, p.random_high, p.oracle, "", estimator,
            )
            for p in e.kept
        ]  # fmt: skip
    return rows


def write(found: Evaluation, output: Path | None, plot: Path | None) -> None:
    """Write the table and the picture; without ``plot`` the picture lies beside ``output``, as PNG.

    Raises:
        ConfigError, DataError: a file ending that is not known.
    """
    if output is not None:
        rows = evaluation_rows(found.languages, found.estimator)
        if output.suffix == ".json":
            write_json(output, [asdict(row) for row in rows])
        else:
            write_records(output, rows, EvaluationRow)
        plot = plot or output.with_suffix(".png")
    if plot is not None:
        plot_kept(found.languages, plot, found.estimator.partition("|")[0])
