"""Agreements as tables: languages across, scorers down, in Markdown, LaTeX and CSV.

A cell holds the value, its interval and, where rows are missing, its coverage and bounds; the best of a column is bold.
An undefined value is a dash with a numbered reason below the table, and never counts as best.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from mdialeval.records import Agreement

MEAN = "mean"
COMPANIONS = ("_chance", "_missing_worst", "_missing_best")
"""Endings of statistics that stand beside another and never compete with it."""

NAMES = {
    "pearson": "Pearson r",
    "spearman": "Spearman ρ",
    "kendall_tau_b": "Kendall τ-b",
    "acc_eq": "pairwise accuracy with ties",
    "acc_eq_calibrated": "pairwise accuracy with calibrated ties",
    "auc": "area under the ROC curve",
}

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "ρ": r"$\rho$",
    "τ": r"$\tau$",
}
_MARKDOWN = {"\\": "\\\\", "|": "\\|", "*": "\\*", "_": "\\_", "`": "\\`", "<": "&lt;", ">": "&gt;", "\n": " "}


@dataclass(frozen=True, slots=True)
class Cell:
    """One agreement as shown.

    Attributes:
        value: three decimals, or a dash.
        interval: ``[low, high]``, or empty.
        coverage: ``n_scored of n`` where rows are missing, or empty.
        best: whether it is the highest of its column.
        bounds: the value if the missing rows had been worst, and best, or empty.
        note: number of its footnote, 0 for none.
    """

    value: str
    interval: str
    coverage: str
    best: bool
    note: int = 0
    level: float | None = None
    bounds: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One scorer's line: a cell a column, None where there is no agreement at all."""

    scorer: str
    measures: str
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """One statistic of one rated dimension of one data set.

    Attributes:
        columns: languages, the mean last.
        counts: rated rows of each column.
        notes: the numbered reasons.
    """

    dataset: str
    dimension: str
    statistic: str
    columns: tuple[str, ...]
    counts: tuple[int, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    @property
    def caption(self) -> str:
        """What the table shows, in words."""
        return f"{self.dataset}, {self.dimension}: {statistic_name(self.statistic)}"


def statistic_name(statistic: str) -> str:
    """A statistic's name for people.

    >>> statistic_name("system_spearman"), statistic_name("acc_eq_chance")
    ('Spearman ρ of system means', 'pairwise accuracy with ties, chance level')
    """
    for ending, words in zip(
        COMPANIONS, (", chance level", ", missing rows worst", ", missing rows best"), strict=True
    ):
        if statistic.endswith(ending):
            return statistic_name(statistic.removesuffix(ending)) + words
    if statistic.startswith("system_"):
        return statistic_name(statistic.removeprefix("system_")) + " of system means"
    return NAMES.get(statistic, statistic)


def number(value: float | None) -> str:
    """Three decimals with a true minus sign; a dash for None.

    >>> number(0.4126), number(-0.05), number(None)
    ('0.413', '−0.050', '–')
    """
    if value is None:
        return "–"
    text = f"{value:.3f}"
    return text[1:] if text == "-0.000" else text.replace("-", "−")


def interval(low: float | None, high: float | None) -> str:
    """``[low, high]``, or empty.

    >>> interval(0.1, 0.25)
    '[0.100, 0.250]'
    """
    return "" if low is None or high is None else f"[{number(low)}, {number(high)}]"


def tables(agreements: Sequence[Agreement]) -> list[Table]:
    """One table a data set, rated dimension and statistic, in the order in which they come."""
    grouped: dict[tuple[str, str, str], list[Agreement]] = {}
    for a in agreements:
        grouped.setdefault((a.dataset, a.dimension, a.statistic), []).append(a)
    return [_table(*key, rows, _bounds(*key, grouped)) for key, rows in grouped.items()]


def _bounds(
    dataset: str, dimension: str, statistic: str, grouped: Mapping[tuple[str, str, str], Sequence[Agreement]]
) -> dict[tuple[str, str, str], str]:
    """Scorer, what it measures and language -> the value if its missing rows had been worst, and best."""
    worst, best = (
        {(a.scorer, a.scorer_dimension, a.language): a.value for a in grouped.get((dataset, dimension, name), ())}
        for name in (f"{statistic}_missing_worst", f"{statistic}_missing_best")
    )
    return {key: f"{number(value)} to {number(best.get(key))}" for key, value in worst.items()}


def _table(
    dataset: str,
    dimension: str,
    statistic: str,
    agreements: Sequence[Agreement],
    bounds: Mapping[tuple[str, str, str], str],
) -> Table:
    languages = sorted({a.language for a in agreements}, key=lambda c: (c == MEAN, c != "en", c))
    scorers = list(dict.fromkeys((a.scorer, a.scorer_dimension) for a in agreements))
    found = {(a.scorer, a.scorer_dimension, a.language): a for a in agreements}
    competes = not statistic.endswith(COMPANIONS)
    best = {}
    for language in languages:
        values = [round(a.value, 3) for a in agreements if a.language == language and a.value is not None]
        best[language] = max(values) if len(values) > 1 and competes else None
    notes: list[str] = []
    rows = []
    for scorer, measures in scorers:
        cells = []
        for language in languages:
            a = found.get((scorer, measures, language))
            bound = bounds.get((scorer, measures, language), "")
            cells.append(None if a is None else _cell(a, best[language], notes, bound))
        rows.append(Row(scorer, measures, tuple(cells)))
    counts = tuple(max(a.n for a in agreements if a.language == language) for language in languages)
    return Table(dataset, dimension, statistic, tuple(languages), counts, tuple(rows), tuple(notes))


def _cell(a: Agreement, best: float | None, notes: list[str], bounds: str) -> Cell:
    note = 0
    skipped = a.language == MEAN and "skipped" in a.reason
    if (a.reason and a.language != MEAN and not a.statistic.endswith(COMPANIONS)) or skipped or a.value is None:
        if a.reason not in notes:
            notes.append(a.reason)
        note = notes.index(a.reason) + 1
    coverage = f"{a.n_scored} of {a.n}" if a.n_scored < a.n else ""
    top = a.value is not None and best is not None and round(a.value, 3) == best
    return Cell(number(a.value), interval(a.low, a.high), coverage, top, note, a.value, bounds)


def to_markdown(table: Table) -> str:
    """A GitHub-flavoured Markdown table with its caption and footnotes."""
    heads = ["scorer", "measures", *(f"{c} (n={n})" for c, n in zip(table.columns, table.counts, strict=True))]
    lines = [f"**{markdown_text(table.caption)}**", "", "| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    for row in table.rows:
        cells = [markdown_text(row.scorer), markdown_text(row.measures), *(_markdown_cell(c) for c in row.cells)]
        lines.append("| " + " | ".join(cells) + " |")
    if table.notes:
        lines += ["", *(f"{i}. {markdown_text(note)}" for i, note in enumerate(table.notes, 1))]
    return "\n".join(lines) + "\n"


def _markdown_cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    value = f"**{cell.value}**" if cell.best else cell.value
    note = f"<sup>{cell.note}</sup>" if cell.note else ""
    covered = ", ".join(part for part in (cell.coverage, cell.bounds) if part)
    return " ".join(part for part in (value + note, cell.interval, f"({covered})" if covered else "") if part)


def markdown_text(text: str) -> str:
    return "".join(_MARKDOWN.get(c, c) for c in text)


def to_latex(table: Table) -> str:
    """A booktabs table; it needs ``\\usepackage{booktabs}``."""
    heads = [
        "Scorer",
        "Measures",
        *(f"{latex_text(c)} ({n})" for c, n in zip(table.columns, table.counts, strict=True)),
    ]
    lines = [
        r"\begin{table}[t]",
        r"\centering\small",
        r"\begin{tabular}{ll" + "c" * len(table.columns) + "}",
        r"\toprule",
        " & ".join(heads) + r" \\",
        r"\midrule",
    ]
    for row in table.rows:
        cells = [latex_text(row.scorer), latex_text(row.measures), *(_latex_cell(c) for c in row.cells)]
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    notes = " ".join(f"({i}) {latex_text(note)}." for i, note in enumerate(table.notes, 1))
    lines += [
        r"\caption{" + f"{latex_text(table.caption)}, rated rows in brackets. {notes}".strip() + "}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    value = cell.value.replace("−", "$-$").replace("–", "--")
    value = rf"\textbf{{{value}}}" if cell.best else value
    note = rf"\textsuperscript{{{cell.note}}}" if cell.note else ""
    small = " ".join(part for part in (cell.interval, cell.coverage, cell.bounds) if part).replace("−", "$-$")
    return value + note + (rf" {{\scriptsize {small}}}" if small else "")


def latex_text(text: str) -> str:
    return "".join(_LATEX.get(c, c) for c in text)


def to_csv(agreements: Sequence[Agreement]) -> str:
    """Every agreement with every field, full precision; an empty cell is None."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    names = [f.name for f in fields(Agreement)]
    writer.writerow(names)
    for a in agreements:
        writer.writerow(["" if (v := getattr(a, name)) is None else v for name in names])
    return stream.getvalue()
