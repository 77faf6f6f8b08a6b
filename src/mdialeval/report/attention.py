"""Attention maps of one example as a figure: the sentence on the left, its graph on the right."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from mdialeval.model.attention import AttentionMaps
from mdialeval.report.figures import check_ending, write_figure

CELL, MARGIN = 0.16, 1.5  # inches
WORD_START = "\N{LOWER ONE EIGHTH BLOCK}"  # what SentencePiece puts before a word


def draw_attention(maps: AttentionMaps, path: str | Path, title: str = "") -> None:
    """Write the maps as one figure; the darker a cell, the more its row looks at its column.

    Args:
        maps: of ``model.attention.attention_maps``.
        path: of a .svg, .png or .pdf file.
        title: above the figure.

    Raises:
        ConfigError: another ending.
    """
    path = Path(path)
    check_ending(path)
    sizes = [len(maps.tokens), len(maps.nodes)]
    width, height = sum(CELL * n + MARGIN for n in sizes), CELL * max(sizes) + MARGIN
    style: Any = {"svg.fonttype": "none", "svg.hashsalt": "mdialeval", "text.parse_math": False, "font.size": 7}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(width, height), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=sizes)
        _panel(left, maps.sentence, maps.tokens, "sentence")
        _panel(right, maps.graph, maps.nodes, "graph")
        if title:
            figure.suptitle(title)
        write_figure(figure, path)


def _panel(axes: Any, matrix: Any, labels: Sequence[str], title: str) -> None:
    axes.imshow(matrix, cmap="Blues", vmin=0.0, aspect="equal", interpolation="nearest")
    words = [label.replace(WORD_START, "") or label for label in labels]
    axes.set_xticks(range(len(words)), words, rotation=90)
    axes.set_yticks(range(len(words)), words)
    axes.tick_params(length=0)
    axes.set_title(title)
