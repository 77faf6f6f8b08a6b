"""The numbers of a benchmark: a row a cell, language and statistic, means over seeds, and the tables made of them."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mdialeval.agreement.agree import MEAN
from mdialeval.records import Agreement, Prediction
from mdialeval.report.tables import interval, latex_text, markdown_text, number, statistic_name
from mdialeval.verbs.cells import Cell

OVER_SEEDS = -1
"""As ``seed``: the mean over seeds."""


@dataclass(frozen=True, slots=True)
class CellResult:
    """One number of one cell, as exported.

    Attributes:
        seed: -1 in the rows that hold the mean over seeds.
        n: rated rows.
        n_scored: rows among them that were scored; the value is computed on these.
        low, high: bounds of the confidence interval.
        spread: standard deviation over the seeds, in the rows of seed -1; else None.
        train_seconds: of the training of all its dimensions, on the machine that did it; over seeds their mean.
        signature: how the numbers are made.
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


def result(cell: Cell, row: Agreement, seconds: float | None, signature: str) -> CellResult:
    """The row of one agreement of a cell."""
    return CellResult(
        strategy=cell.name,
        k=cell.k,
        seed=cell.seed,
        dataset=row.dataset,
        language=row.language,
        scorer_dimension=row.scorer_dimension,
        dimension=row.dimension,
        statistic=row.statistic,
        n=row.n,
        n_scored=row.n_scored,
        value=row.value,
        low=row.low,
        high=row.high,
        spread=None,
        train_seconds=seconds,
        signature=signature,
        reason=row.reason,
    )


def over_seeds(found: Mapping[Cell, Sequence[Agreement]]) -> Iterator[tuple[Cell, Agreement, float | None]]:
    """Mean over the seeds that have a value, with the standard deviation; ``reason`` says where some have none.

    The interval is the mean of the seeds' intervals.

    The cell is the strategy's, its seed ``OVER_SEEDS``.
    """
    groups: dict[tuple[str, ...], list[Agreement]] = defaultdict(list)
    cells: dict[str, Cell] = {}
    for cell, rows in found.items():
        cells.setdefault(cell.name, replace(cell, seed=OVER_SEEDS))
        for row in rows:
            groups[cell.name, row.language, row.scorer_dimension, row.dimension, row.statistic].append(row)
    for (name, *_), rows in groups.items():
        values = [row.value for row in rows if row.value is not None]
        if not values:
            yield cells[name], replace(rows[0], scorer=name), None
            continue
        lows = [row.low for row in rows if row.low is not None]
        highs = [row.high for row in rows if row.high is not None]
        mean = replace(
            rows[0],
            scorer=name,
            value=statistics.fmean(values),
            low=statistics.fmean(lows) if lows else None,
            high=statistics.fmean(highs) if highs else None,
            p_value=rows[0].p_value if len(rows) == 1 else None,
            reason=_reason(rows),
        )
        yield cells[name], mean, statistics.stdev(values) if len(values) > 1 else None


def _reason(rows: Sequence[Agreement]) -> str:
    """What the seeds say of their values, and how many have none."""
    lacking = sum(row.value is None for row in rows)
    said = list(dict.fromkeys(row.reason for row in rows if row.reason))
    return "; ".join([f"{lacking} of {len(rows)} seeds have no value", *said] if lacking else said)


def mean_predictions(scores: Mapping[Cell, Sequence[Prediction]]) -> Iterator[Prediction]:
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


def mean_seconds(seconds: Mapping[Cell, float | None], name: str) -> float | None:
    """Mean training time of a strategy's cells over the seeds; None where one is not known."""
    times = [taken for cell, taken in seconds.items() if cell.name == name]
    return None if not times or None in times else statistics.fmean(t for t in times if t is not None)


def to_markdown(results: Sequence[CellResult]) -> str:
    """A table a set, rated dimension and statistic: strategies down, languages and time across, signatures below."""
    lines: list[str] = []
    for caption, heads, rows in _grids(results):
        heads, rows = [markdown_text(h) for h in heads], [[markdown_text(cell) for cell in row] for row in rows]
        lines += [f"**{markdown_text(caption)}**", "", _line(heads), _line(["---"] * len(heads)), *map(_line, rows), ""]
    lines += [f"- {markdown_text(name)}: `{line}`" for name, line in _signatures(results).items()]
    return "\n".join(lines) + "\n"


def to_latex(results: Sequence[CellResult]) -> str:
    """The same as booktabs tables; they need ``\\usepackage{booktabs}``."""
    lines: list[str] = []
    for caption, heads, rows in _grids(results):
        lines += [
            r"\begin{table}[t]",
            r"\centering\small",
            r"\begin{tabular}{l" + "c" * (len(heads) - 1) + "}",
            r"\toprule",
            " & ".join(map(_latex, heads)) + r" \\",
            r"\midrule",
            *(" & ".join(map(_latex, row)) + r" \\" for row in rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\caption{" + _latex(caption) + ", mean over seeds, interval in brackets.}",
            r"\end{table}",
            "",
        ]
    lines += [f"% {name}: {line}" for name, line in _signatures(results).items()]
    return "\n".join(lines) + "\n"


def _grids(results: Sequence[CellResult]) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Caption, heads and rows of each table, from the means over seeds."""
    groups: dict[tuple[str, str, str, str], list[CellResult]] = defaultdict(list)
    for row in results:
        if row.seed == OVER_SEEDS:
            groups[row.dataset, row.scorer_dimension, row.dimension, row.statistic].append(row)
    for (dataset, measured, dimension, statistic), rows in groups.items():
        languages = sorted({row.language for row in rows}, key=lambda code: (code == MEAN, code != "en", code))
        at = {(row.strategy, row.language): row for row in rows}
        counts = {code: max(row.n for row in rows if row.language == code) for code in languages}
        heads = ["strategy", *(f"{code} (n={counts[code]})" for code in languages), "training"]
        body = []
        for name in dict.fromkeys(row.strategy for row in rows):
            taken = next(row.train_seconds for row in rows if row.strategy == name)
            cells = [_cell(at.get((name, code))) for code in languages]
            body.append([name, *cells, "" if taken is None else f"{taken:.0f} s"])
        yield f"{dataset}, {measured} against {dimension}: {statistic_name(statistic)}", heads, body


def _cell(row: CellResult | None) -> str:
    """Value, spread over seeds, interval and, where rows are missing, coverage; the reason where there is no value."""
    if row is None:
        return ""
    if row.value is None:
        return f"{number(None)} ({row.reason})" if row.reason else number(None)
    spread = f"± {row.spread:.3f}" if row.spread is not None else ""
    coverage = f"({row.n_scored} of {row.n})" if row.n_scored < row.n else ""
    return " ".join(part for part in (number(row.value), spread, interval(row.low, row.high), coverage) if part)


def _signatures(results: Sequence[CellResult]) -> dict[str, str]:
    """Cell -> its signature, each distinct one once."""
    found: dict[str, str] = {}
    for row in results:
        if row.seed != OVER_SEEDS:
            found.setdefault(f"{row.strategy}, seed {row.seed}", row.signature)
    return found


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _latex(text: str) -> str:
    return latex_text(text).replace("−", "$-$").replace("–", "--").replace("±", r"$\pm$")
