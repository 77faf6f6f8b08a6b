"""What a report shows: plain frozen values that a run fills in.  Every part may be empty and is then left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from mdialeval.agreement.annotators import SelfAgreement
from mdialeval.agreement.compare import Comparison
from mdialeval.agreement.systems import SystemRow
from mdialeval.records import Agreement, Scalar

Labels = Literal["human", "by construction"]
Severity = Literal["warning", "note"]


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a reader of the numbers must know: a constant scorer, low coverage, truncated rows."""

    subject: str
    text: str
    severity: Severity = "warning"


@dataclass(frozen=True, slots=True)
class Sample:
    """One row that was dropped, to look at.

    Attributes:
        reason: why; one of the reasons of its ``Funnel``.
        score: its quality estimate, or None where it was left out before.
        detail: the finding in words.
    """

    reason: str
    id: str
    source: str
    hypothesis: str
    score: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Funnel:
    """What happened to the translations of one language.

    Attributes:
        rows_in: translations before ranking.
        reasons: (reason, rows) of those that were dropped, in the order of the checks; with ``rows_out`` they add up
            to ``rows_in``.
        rows_out: translations kept.
        samples: some of the dropped.
        name: which selection, where there are several (such as one a dimension).
    """

    language: str
    rows_in: int
    reasons: tuple[tuple[str, int], ...]
    rows_out: int
    samples: tuple[Sample, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class Cut:
    """What the best k per cent of one language are.

    Attributes:
        ranked: translations that were ranked.
        kept: rows among them that are kept at this k.
        score: the lowest score kept, None where nothing was kept.
        mean: of the scores kept.
    """

    language: str
    k: float
    ranked: int
    kept: int
    score: float | None
    mean: float | None


@dataclass(frozen=True, slots=True)
class FlagCount:
    """How often one check fired in one language: ``rows`` of ``of`` translations."""

    language: str
    flag: str
    rows: int
    of: int


@dataclass(frozen=True, slots=True)
class Distribution:
    """Numbers of one language to draw as a histogram.

    Attributes:
        values: all of them or an evenly drawn sample; ``n`` says how many there are in all.
        cut: where the selection cut, or None.
    """

    name: str
    language: str
    values: tuple[float, ...]
    n: int
    cut: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One point of a training log; None where it was not measured."""

    step: int
    loss: float | None = None
    dev_loss: float | None = None
    dev_value: float | None = None


@dataclass(frozen=True, slots=True)
class Training:
    """How one evaluator was trained.

    Attributes:
        steps: the log, steps ascending.
        dev_name: what ``dev_value`` is, such as ``accuracy``.
        figures: (name, value) to list, such as pairs, pairs a second, best step.
    """

    evaluator: str
    steps: tuple[Step, ...]
    dev_name: str = "dev"
    figures: tuple[tuple[str, Scalar], ...] = ()


@dataclass(frozen=True, slots=True)
class RatedSet:
    """A data set whose ratings scorers are checked against.

    Attributes:
        labels: ``human``, or ``by construction`` where nobody rated anything.
        rows: examples, over all languages.
        licence, note: for people.
    """

    name: str
    labels: Labels
    rows: int
    languages: tuple[str, ...]
    scale: str = ""
    licence: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Scatter:
    """Predictions against ratings.

    Attributes:
        points: (rating, prediction) of all rows or of an evenly drawn sample; ``n`` says how many there are.
    """

    dataset: str
    language: str
    scorer: str
    scorer_dimension: str
    dimension: str
    points: tuple[tuple[float, float], ...]
    n: int


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a curve with its interval, where there is one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """A named line of points, x ascending."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Curves:
    """A figure of lines: kept quality against k, a sweep, a learning curve."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Component:
    """A model, engine, corpus or package that the numbers rest on.

    Attributes:
        role: what it does, such as ``encoder`` or ``translation``.
        embedded: whether it ships with the package and needs no download.
    """

    role: str
    name: str
    version: str = ""
    licence: str = ""
    embedded: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """How the numbers of one scorer or stage are made, in one line."""

    name: str
    line: str


@dataclass(frozen=True, slots=True)
class ReportData:
    """Everything in a report.  The same data give the same bytes.

    Attributes:
        title, run: the report's and the run's names.
        summary: a sentence or two under the title.
        settings: section -> key -> value, as configured.
        statistic: the one that headlines and figures use.
        confidence: of all intervals.
        created: a date, only where the caller wants one inside.
    """

    title: str
    run: str
    summary: str = ""
    settings: Mapping[str, Mapping[str, Scalar]] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()
    funnels: tuple[Funnel, ...] = ()
    cuts: tuple[Cut, ...] = ()
    flags: tuple[FlagCount, ...] = ()
    distributions: tuple[Distribution, ...] = ()
    trainings: tuple[Training, ...] = ()
    sets: tuple[RatedSet, ...] = ()
    agreements: tuple[Agreement, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    repeats: tuple[SelfAgreement, ...] = ()
    systems: tuple[SystemRow, ...] = ()
    scatters: tuple[Scatter, ...] = ()
    curves: tuple[Curves, ...] = ()
    components: tuple[Component, ...] = ()
    signatures: tuple[Signature, ...] = ()
    statistic: str = "spearman"
    confidence: float = 0.95
    created: str = ""
