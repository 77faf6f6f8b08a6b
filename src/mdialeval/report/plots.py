"""Figures as inline SVG that takes its colours and font from the page, so that light and dark both work.

Matplotlib draws with placeholder colours, which become CSS variables of the template afterwards.  Text stays text: it
can be selected and read aloud, and every script shows in the reader's own fonts.  Figures are drawn small
(about 440 px) and scale up, so that their text stays readable on a phone.
"""

from __future__ import annotations

import functools
import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from mdialeval.report.data import Curves, Distribution, Funnel, Scatter, Training
from mdialeval.report.tables import Table, statistic_name

INK, MUTED, GRID, CARD = "#010203", "#010204", "#010205", "#010206"
SERIES = tuple(f"#0102{i:02x}" for i in range(16, 24))
_VARIABLES = {INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--grid)", CARD: "var(--card)"} | {
    color: f"var(--c{i})" for i, color in enumerate(SERIES, 1)
}
MARKERS = "osD^vPX*"
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))

WIDTH = 4.6  # inches
PANEL = (2.5, 1.9)
MAX_POINTS = 300
MAX_SCORERS = 8

_STYLE: Any = {  # matplotlib types its settings key by key
    "svg.fonttype": "none",
    "svg.hashsalt": "mdialeval",
    "text.parse_math": False,
    "font.size": 8.5,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "savefig.transparent": True,
}


def _svg(
    draw: Callable[[Figure], None],
    size: tuple[float, float],
    name: str,
    margins: tuple[float, float, float, float] | None = None,
) -> str:
    """Draw a figure and return it as an SVG element whose ids are unique to its name.

    Args:
        size: inches.
        margins: left, bottom, right and top in inches, for many small panels; None lets matplotlib measure its
            texts, which takes three times as long.
    """
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the reader's fonts draw the text, not ours
        figure = Figure(figsize=size, layout=None if margins else "constrained")
        if margins:
            left, bottom, right, top = margins
            figure.subplots_adjust(left / size[0], bottom / size[1], 1 - right / size[0], 1 - top / size[1])
        draw(figure)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _embed(stream.getvalue(), name)


_LONG = re.compile(r"\d+\.\d{3,}")


def _short(number: re.Match[str]) -> str:
    return f"{float(number.group()):.2f}"


def _embed(document: str, name: str) -> str:
    """An SVG document as an element of a page: no prologue, no namespace, page colours and font, short numbers."""
    svg = document[document.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.S)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
    svg = re.sub(r' (?:width|height)="[\d.]+pt"', "", svg, count=2)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'href="#', f'href="#{name}-', svg).replace("url(#", f"url(#{name}-")
    svg = re.sub(r"font: (?:\w+ )?([\d.]+px) [^;\"]+", r"font-size: \1", svg)
    svg = re.sub(r"#0102[0-9a-f]{2}", lambda found: _VARIABLES[found.group()], svg)
    svg = re.sub(r"<[^>]*>", lambda tag: _LONG.sub(_short, tag.group()), svg)  # coordinates, not the texts
    svg = svg.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)
    return re.sub(r"\n\s*", "\n", svg).strip()


def funnel_plot(funnels: Sequence[Funnel], name: str) -> str:
    """Per language, the share of translations kept and dropped for each reason."""
    reasons = list(dict.fromkeys(reason for f in funnels for reason, _ in f.reasons))
    labels = ["kept", *reasons]

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        places = np.arange(len(funnels))[::-1]
        left = np.zeros(len(funnels))
        for i, label in enumerate(labels):
            rows = [f.rows_out if label == "kept" else dict(f.reasons).get(label, 0) for f in funnels]
            shares = np.array([100 * r / f.rows_in if f.rows_in else 0.0 for r, f in zip(rows, funnels, strict=True)])
            color = GRID if label == "below_cut" else SERIES[i % 7]  # the cut is the rule, the others are findings
            axes.barh(
                places, shares, left=left, height=0.66, color=color, edgecolor=CARD,
                linewidth=1.2, hatch="" if i == 0 else ("", "////", "....", "xxxx")[i // 7 % 4],
                label=_words(label),
            )  # fmt: skip
            left += shares
        axes.set_yticks(places, [f.language for f in funnels], color=INK)
        axes.set_xlim(0, 100)
        axes.set_xlabel("per cent of translations")
        axes.grid(axis="y", visible=False)
        figure.legend(loc="outside upper left", ncols=3, handlelength=1, columnspacing=1.2)

    rows_of_legend = -(-len(labels) // 3)
    return _svg(draw, (WIDTH, 0.65 + 0.28 * len(funnels) + 0.19 * rows_of_legend), name)


def _words(reason: str) -> str:
    return reason.replace("_", " ")


def histograms(distributions: Sequence[Distribution], name: str) -> list[tuple[Distribution, str]]:
    """A panel a language on one common axis, with the line at which the selection cut."""
    values = np.concatenate([np.asarray(d.values, float) for d in distributions])
    if not len(values):
        return []
    low, high = float(values.min()), float(values.max())
    if low == high:
        low, high = low - 0.5, high + 0.5
    bins = np.linspace(low, high, 31)

    def draw(figure: Figure, d: Distribution) -> None:
        axes = figure.add_subplot()
        counts, _ = np.histogram(d.values, bins)
        kept = bins[:-1] >= d.cut if d.cut is not None else np.ones(30, bool)
        colors = [SERIES[0] if k else MUTED for k in kept]
        axes.bar(
            bins[:-1], counts / max(1, counts.sum()), np.diff(bins), align="edge", color=colors, edgecolor=CARD, lw=0.5
        )
        if d.cut is not None:
            axes.axvline(d.cut, color=INK, lw=1.1, ls=DASHES[1])
        axes.set_xlim(low, high)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.grid(axis="y", visible=False)
        axes.locator_params(axis="x", nbins=4)

    panels = []
    for i, d in enumerate(distributions):
        svg = _svg(functools.partial(draw, d=d), (PANEL[0], 1.2), f"{name}-{i}", (0.1, 0.25, 0.1, 0.05))
        panels.append((d, svg))
    return panels


def training_plot(training: Training, name: str) -> str:
    """Training and development loss, and the development figure on its own axis; empty without a log."""
    if not training.steps:
        return ""

    def line(axes: Any, key: str, i: int, label: str) -> None:
        points = [(s.step, v) for s in training.steps if (v := getattr(s, key)) is not None]
        if points:
            marker = MARKERS[i] if len(points) <= 40 else ""
            axes.plot(*zip(*points, strict=True), color=SERIES[i], ls=DASHES[i], marker=marker, ms=3.5, label=label)

    def draw(figure: Figure) -> None:
        with_dev = any(s.dev_value is not None for s in training.steps)
        all_axes = figure.subplots(2 if with_dev else 1, 1, sharex=True, squeeze=False)[:, 0]
        line(all_axes[0], "loss", 0, "training loss")
        line(all_axes[0], "dev_loss", 1, "development loss")
        all_axes[0].set_ylabel("loss")
        all_axes[0].legend(loc="upper right", ncols=2)
        if with_dev:
            line(all_axes[1], "dev_value", 2, training.dev_name)
            all_axes[1].set_ylabel(training.dev_name)
        all_axes[-1].set_xlabel("step")

    return _svg(draw, (WIDTH, 3.0), name)


def forest_plot(
    table: Table, intervals: Mapping[tuple[str, str, str], tuple[float, float]], name: str
) -> tuple[str, int]:
    """Each scorer's value and interval in each language; and how many scorers are drawn.

    Args:
        table: values.
        intervals: (scorer, what it measures, language) -> bounds, where there are any.
    """

    def standing(row: Any) -> float:
        levels = [c.level for c in row.cells if c is not None and c.level is not None]
        return -levels[-1] if levels else 2.0

    rows = sorted(table.rows, key=standing)[:MAX_SCORERS]
    step = 0.8 / max(1, len(rows))

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        places = np.arange(len(table.columns))[::-1].astype(float)
        for i, row in enumerate(rows):
            for place, language, cell in zip(places, table.columns, row.cells, strict=True):
                if cell is None or cell.level is None:
                    continue
                y = place + 0.4 - step * (i + 0.5)
                bounds = intervals.get((row.scorer, row.measures, language))
                if bounds is not None:
                    axes.plot(bounds, (y, y), color=SERIES[i], lw=2.2, alpha=0.55, solid_capstyle="butt")
                axes.plot([cell.level], [y], MARKERS[i], color=SERIES[i], ms=4.8, mec=CARD, mew=0.5)
            axes.plot([], [], MARKERS[i], color=SERIES[i], ms=4.8, label=f"{row.scorer} ({row.measures})")
        for place in places[:-1]:
            axes.axhline(place - 0.5, color=GRID, lw=0.6)
        axes.axvline(0.5 if table.statistic == "auc" else 0.0, color=MUTED, lw=0.9)
        axes.set_yticks(places, table.columns, color=INK)
        axes.set_ylim(-0.55, len(places) - 0.45)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(statistic_name(table.statistic))
        figure.legend(loc="outside upper left", ncols=1 if len(rows) < 3 else 2, handletextpad=0.3)

    height = (
        0.75
        + len(table.columns) * max(0.3, 0.13 * len(rows))
        + 0.17 * (len(rows) if len(rows) < 3 else -(-len(rows) // 2))
    )
    return _svg(draw, (WIDTH, height), name), len(rows)


def scatter_panels(scatters: Sequence[Scatter], name: str) -> list[tuple[Scatter, int, str]]:
    """A panel a language: predictions against ratings, jittered sideways, with the mean of each rating level.

    Returns:
        the scatter, how many of its points are drawn, and the figure.
    """
    xs = [p[0] for s in scatters for p in s.points]
    ys = [p[1] for s in scatters for p in s.points]
    if not xs:
        return []
    x_range, y_range = _padded(xs), _padded(ys)
    levels = np.unique(xs)
    edges = levels if len(levels) <= 9 else np.linspace(levels[0], levels[-1], 8)
    jitter = 0.3 * float(np.diff(levels).min()) if 1 < len(levels) <= 9 else 0.01 * (x_range[1] - x_range[0])

    def draw(figure: Figure, s: Scatter, points: Any) -> None:
        axes = figure.add_subplot()
        shift = np.random.default_rng(0).uniform(-jitter, jitter, len(points))
        axes.plot(points[:, 0] + shift, points[:, 1], "o", ms=2.6, mew=0, color=SERIES[0], alpha=0.4)
        everything = np.array(s.points)
        nearest = np.abs(everything[:, :1] - edges[None, :]).argmin(axis=1)
        means = [(edges[k], everything[nearest == k, 1].mean()) for k in range(len(edges)) if (nearest == k).any()]
        axes.plot(*zip(*means, strict=True), color=SERIES[1], marker="D", ms=4, mec=CARD, mew=0.6, lw=1.4)
        axes.set_xlim(*x_range)
        axes.set_ylim(*y_range)
        axes.locator_params(nbins=5)

    panels = []
    for i, s in enumerate(scatters):
        if s.points:
            points = np.array(s.points)
            drawn = points[np.linspace(0, len(points) - 1, min(len(points), MAX_POINTS)).round().astype(int)]
            svg = _svg(functools.partial(draw, s=s, points=drawn), PANEL, f"{name}-{i}", (0.42, 0.25, 0.05, 0.05))
            panels.append((s, len(drawn), svg))
    return panels


def _padded(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = 0.06 * (high - low) or 0.5
    return low - margin, high + margin


def curve_plot(curves: Curves, name: str) -> str:
    """Lines with their intervals as bands."""

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        for i, series in enumerate(curves.series):
            color, marker = SERIES[i % len(SERIES)], MARKERS[i % len(MARKERS)]
            x, y = [p.x for p in series.points], [p.y for p in series.points]
            axes.plot(x, y, color=color, ls=DASHES[i % len(DASHES)], marker=marker, ms=4, label=series.name)
            band = [(p.x, p.low, p.high) for p in series.points if p.low is not None and p.high is not None]
            if len(band) > 1:
                at, low, high = zip(*band, strict=True)
                axes.fill_between(at, low, high, color=color, alpha=0.14 if len(curves.series) < 4 else 0.07, lw=0)
        axes.set_xlabel(curves.x_label)
        axes.set_ylabel(curves.y_label)
        figure.legend(loc="outside upper left", ncols=3, columnspacing=1.2)

    return _svg(draw, (WIDTH, 2.6 + 0.17 * -(-len(curves.series) // 3)), name)
