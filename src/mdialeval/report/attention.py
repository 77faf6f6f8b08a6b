"""Attention maps of one example as a figure: the sentence on the left, its graph on the right."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import matplotlib
from matplotlib.figure import Figure

from mdialeval.files import replace_atomically
from mdialeval.model.attention import AttentionMaps

CELL, MARGIN = 0.16, 1.5  # inches


def draw_attention(maps: AttentionMaps, path: str | Path, title: str = "") -> None:
    """Write the maps as one SVG; the darker a cell, the more its row looks at its column.

    Args:
        maps: of ``model.attention.attention_maps``.
        path: of the SVG.
        title: above the figure.
    """
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
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})

    def put(stream: BinaryIO) -> None:
        stream.write(buffer.getvalue())

    replace_atomically(Path(path), put)


def _panel(axes: Any, matrix: Any, labels: Sequence[str], title: str) -> None:
    axes.imshow(matrix, cmap="Blues", vmin=0.0, aspect="equal", interpolation="nearest")
    axes.set_xticks(range(len(labels)), labels, rotation=90)
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(length=0)
    axes.set_title(title)
