"""One self-contained page out of ``ReportData``: styles, figures and tables inside, nothing fetched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2

from mdialeval.agreement.annotators import SelfAgreement
from mdialeval.agreement.systems import SystemRow
from mdialeval.files import replace_atomically
from mdialeval.languages import language
from mdialeval.records import Agreement
from mdialeval.report import plots
from mdialeval.report.data import Cut, Distribution, Funnel, Notice, RatedSet, ReportData, Scatter
from mdialeval.report.tables import (
    COMPANIONS,
    MEAN,
    Table,
    interval,
    number,
    statistic_name,
    tables,
    to_csv,
    to_latex,
    to_markdown,
)

PAGE = "report.html"
LOW_COVERAGE = 0.9
"""Below this share of scored rows a warning is written."""


class Headline(NamedTuple):
    """The best scorer on one rated dimension of one data set."""

    best: Agreement
    runner_up: Agreement | None
    labels: str


class Check(NamedTuple):
    """All that the page shows of one rated dimension of one data set."""

    main: Table
    forest: str
    drawn: int
    others: tuple[Table, ...]
    companions: tuple[Table, ...]


def write_report(data: ReportData, folder: Path) -> Path:
    """Write ``report.html`` and the agreements as ``agreement.csv``, ``.md`` and ``.tex``: same data, same bytes.

    Returns:
        the path of the page.
    """
    every = tables(data.agreements)
    texts = {
        PAGE: render(data),
        "agreement.csv": to_csv(data.agreements),
        "agreement.md": "\n".join(to_markdown(t) for t in every),
        "agreement.tex": "\n".join(to_latex(t) for t in every),
    }
    for name, text in texts.items():
        _write(folder / name, text)
    return folder / PAGE


def _write(path: Path, text: str) -> None:
    def write(stream: Any) -> None:
        stream.write(text.encode())

    replace_atomically(path, write)


def render(data: ReportData) -> str:
    """The page as text; all data are escaped by the template engine."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mdialeval.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"number": number, "statistic": statistic_name, "words": _words, "language": _language}
    environment.globals |= {"interval": interval, "MEAN": MEAN, "to_latex": to_latex, "to_markdown": to_markdown}
    sets = {s.name: s for s in data.sets}
    return environment.get_template("report.html").render(
        data=data,
        notices=(*data.notices, *_coverage_notices(data.agreements)),
        headlines=_headlines(data, sets),
        funnels=_funnels(data.funnels),
        cuts=_cuts(data.cuts),
        flags=_flags(data),
        distributions=_distributions(data.distributions),
        trainings=[
            (t, plots.training_plot(t, f"training{i}") if t.steps else "") for i, t in enumerate(data.trainings)
        ],
        checks=_checks(data),
        sets=sets,
        repeats=_repeats(data),
        systems=_systems(data.systems),
        scatters=_scatters(data.scatters),
        curves=[(c, plots.curve_plot(c, f"curves{i}")) for i, c in enumerate(data.curves)],
    )


def _words(name: str) -> str:
    return name.replace("_", " ")


def _language(code: str) -> str:
    return "Mean over languages" if code == MEAN else language(code).name


def _systems(rows: Sequence[SystemRow]) -> list[tuple[SystemRow, list[SystemRow]]]:
    """The rows of each data set, scorer and dimension, under the first of them."""
    found: dict[tuple[str, str, str], list[SystemRow]] = {}
    for row in rows:
        found.setdefault((row.dataset, row.scorer, row.dimension), []).append(row)
    return [(group[0], group) for group in found.values()]


def _headlines(data: ReportData, sets: dict[str, RatedSet]) -> list[Headline]:
    """Per data set and dimension the scorer with the highest mean, human ratings first."""
    headlines = []
    for table in tables([a for a in data.agreements if a.statistic == data.statistic]):
        rows = [a for a in data.agreements if (a.dataset, a.dimension, a.statistic) == _key(table)]
        column = MEAN if MEAN in table.columns else table.columns[0]
        defined = [a for a in rows if a.language == column and a.value is not None]
        ranked = sorted(defined, key=lambda a: a.value or 0.0, reverse=True)
        if ranked:
            known = sets.get(table.dataset)
            headlines.append(Headline(ranked[0], ranked[1] if len(ranked) > 1 else None, known.labels if known else ""))
    return sorted(headlines, key=lambda h: h.labels != "human")


def _key(table: Table) -> tuple[str, str, str]:
    return table.dataset, table.dimension, table.statistic


def _coverage_notices(agreements: Sequence[Agreement]) -> list[Notice]:
    """A warning for each scorer and data set with many rows without a score, and for each constant one."""
    found: dict[tuple[str, str], list[str]] = {}
    for a in agreements:
        if a.language == MEAN or a.statistic.startswith("system_") or a.statistic.endswith(COMPANIONS):
            continue
        problem, where = "", ""
        if a.n_scored < LOW_COVERAGE * a.n:
            problem, where = "rated rows without a score", f"{a.language}: {a.n_scored} of {a.n} scored"
        elif a.value is None and a.reason.startswith("constant"):
            problem, where = f"{a.reason}, so no correlation is defined", a.language
        if problem:
            places = found.setdefault((f"{a.scorer} ({a.scorer_dimension}) on {a.dataset}", problem), [])
            if where not in places:
                places.append(where)
    return [Notice(subject, f"{problem} ({', '.join(places)})") for (subject, problem), places in found.items()]


def _funnels(funnels: Sequence[Funnel]) -> list[tuple[str, list[Funnel], list[str], str]]:
    """Per selection: its name, its funnels, all reasons and the figure."""
    named: dict[str, list[Funnel]] = {}
    for f in funnels:
        named.setdefault(f.name, []).append(f)
    return [
        (name, rows, list(dict.fromkeys(r for f in rows for r, _ in f.reasons)), plots.funnel_plot(rows, f"funnel{i}"))
        for i, (name, rows) in enumerate(named.items())
    ]


def _cuts(cuts: Sequence[Cut]) -> dict[str, Any]:
    """Languages down, k across, ascending."""
    languages = list(dict.fromkeys(c.language for c in cuts))
    return {"k": sorted({c.k for c in cuts}), "languages": languages, "of": {(c.language, c.k): c for c in cuts}}


def _flags(data: ReportData) -> dict[str, Any]:
    """Checks down, languages across."""
    languages = list(dict.fromkeys(f.language for f in data.flags))
    names = list(dict.fromkeys(f.flag for f in data.flags))
    return {"languages": languages, "names": names, "of": {(f.flag, f.language): f for f in data.flags}}


def _distributions(distributions: Sequence[Distribution]) -> list[tuple[str, list[tuple[Distribution, str]]]]:
    named: dict[str, list[Distribution]] = {}
    for d in distributions:
        named.setdefault(d.name, []).append(d)
    return [(name, plots.histograms(rows, f"histogram{i}")) for i, (name, rows) in enumerate(named.items())]


def _checks(data: ReportData) -> list[tuple[str, list[Check]]]:
    """Per data set, per rated dimension: the headline table with its figure, and the other statistics."""
    bounds = {
        (a.dataset, a.dimension, a.statistic, a.scorer, a.scorer_dimension, a.language): (a.low, a.high)
        for a in data.agreements
        if a.low is not None and a.high is not None
    }
    grouped: dict[str, dict[str, list[Table]]] = {}
    for table in tables(data.agreements):
        grouped.setdefault(table.dataset, {}).setdefault(table.dimension, []).append(table)
    checks: list[tuple[str, list[Check]]] = []
    for dataset, dimensions in grouped.items():
        shown: list[Check] = []
        for every in dimensions.values():
            main = next((t for t in every if t.statistic == data.statistic), every[0])
            own = {key[3:]: value for key, value in bounds.items() if key[:3] == _key(main)}
            figure, drawn = plots.forest_plot(main, own, f"forest{len(checks)}-{len(shown)}")
            beside = tuple(t for t in every if t.statistic.endswith(COMPANIONS))
            others = tuple(t for t in every if t is not main and t not in beside)
            shown.append(Check(main, figure, drawn, others, beside))
        checks.append((dataset, shown))
    return checks


def _repeats(data: ReportData) -> list[tuple[SelfAgreement, list[Agreement]]]:
    """Each judge's agreement with itself, beside its agreement with the ratings: that of its own name, else all."""
    found = []
    for own in data.repeats:
        place = (own.dataset, own.scorer, own.dimension, own.language, data.statistic)
        beside = [
            a for a in data.agreements if (a.dataset, a.scorer, a.scorer_dimension, a.language, a.statistic) == place
        ]
        found.append((own, [a for a in beside if a.dimension == own.dimension] or beside))
    return found


def _scatters(scatters: Sequence[Scatter]) -> list[tuple[Scatter, list[tuple[Scatter, int, str]]]]:
    named: dict[tuple[str, str, str, str], list[Scatter]] = {}
    for s in scatters:
        named.setdefault((s.dataset, s.dimension, s.scorer, s.scorer_dimension), []).append(s)
    return [(rows[0], plots.scatter_panels(rows, f"scatter{i}")) for i, rows in enumerate(named.values())]
