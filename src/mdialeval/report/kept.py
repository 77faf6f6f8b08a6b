"""The picture of a meta-evaluation: how good, in people's eyes, is what an estimator keeps?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from mdialeval.rank.evaluate import QeEvaluation
from mdialeval.report.figures import check_ending, write_figure

_KEPT, _CHANCE, _ORACLE = "#1b6ca8", "#767676", "#b3541e"
_STYLE: Any = {  # matplotlib types its settings key by key
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.7,
    "axes.edgecolor": "#9a9a9a",
    "text.parse_math": False,
    "svg.hashsalt": "mdialeval",
    "legend.frameon": False,
}
_ACROSS = 3  # panels a line
_PANEL = (3.3, 2.5)  # inches


def plot_kept(found: Sequence[QeEvaluation], path: Path, title: str = "") -> None:
    """Draw the mean gold score of the kept set at each k, a panel a language, against chance and oracle.

    The estimator's line carries its 95 % bootstrap interval, the line of chance the range of 95 % of random choices.

    Args:
        found: one evaluation a language.
        path: ``.png``, ``.svg`` or ``.pdf``; the same evaluations give the same bytes.
        title: above all panels, such as the estimator's name.

    Raises:
        ConfigError: another ending.
    """
    check_ending(path)
    shown = [evaluation for evaluation in found if evaluation.kept]
    across = min(_ACROSS, max(1, len(shown)))
    down = math.ceil(max(1, len(shown)) / across)
    with matplotlib.rc_context(_STYLE):
        width = max(_PANEL[0] * across, 4.6)
        figure = Figure(figsize=(width, _PANEL[1] * down + (0.75 if title else 0.5)), layout="constrained")
        panels = figure.subplots(down, across, squeeze=False)
        for place, axes in enumerate(panels.flat):
            if place < len(shown):
                _panel(axes, shown[place], first=place % across == 0)
            else:
                axes.set_visible(False)
        if shown:
            handles, labels = panels[0, 0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=3, handlelength=2.4)
        if title:
            figure.suptitle(title, fontsize=10)
        write_figure(figure, path)


def _panel(axes: Any, evaluation: QeEvaluation, *, first: bool) -> None:
    """One language; every k has the same room, since people choose among them, not along a scale."""
    kept = sorted(evaluation.kept, key=lambda point: point.k)
    places = range(len(kept))
    axes.fill_between(
        places, [p.random_low for p in kept], [p.random_high for p in kept], color=_CHANCE, alpha=0.18, lw=0
    )
    axes.plot(places, [p.random for p in kept], color=_CHANCE, ls=(0, (1, 1.5)), label="random (95 % of choices)")
    axes.plot(places, [p.oracle for p in kept], color=_ORACLE, ls=(0, (5, 2)), marker="^", ms=4, label="oracle")
    means = [p.mean for p in kept]
    reach = ([p.mean - min(p.low, p.mean) for p in kept], [max(p.high, p.mean) - p.mean for p in kept])
    axes.errorbar(
        places, means, reach, color=_KEPT, marker="o", ms=4.5, capsize=2.5, lw=1.8, elinewidth=1.1,
        label="estimator (95 % interval)",
    )  # fmt: skip
    axes.set_xticks(list(places), [f"{p.k:g}" for p in kept])
    axes.set_xlabel("k: per cent kept")
    if first:
        axes.set_ylabel("mean human score")
    rho = next((c for c in evaluation.correlations if c.statistic == "spearman"), None)
    ending = f", Spearman {rho.value:.2f}" if rho and rho.value is not None else ""
    axes.set_title(f"{evaluation.language or 'all'} (n = {evaluation.n_scored:,}{ending})", fontsize=9.5, loc="left")
