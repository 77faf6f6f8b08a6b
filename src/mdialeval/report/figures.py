"""Figures as files, in the form that their ending says and without the time they were made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from mdialeval.errors import ConfigError
from mdialeval.files import replace_atomically

ENDINGS = (".png", ".svg", ".pdf")
_DATES = {".svg": "Date", ".pdf": "CreationDate"}


def check_ending(path: Path) -> None:
    """Refuse a file that is not one of ``ENDINGS`` before anything is computed.

    Raises:
        ConfigError: another ending.
    """
    if path.suffix not in ENDINGS:
        raise ConfigError(f"{path}: unknown ending {path.suffix!r} of a plot: use one of {', '.join(ENDINGS)}")


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure atomically; the same figure gives the same bytes."""
    metadata: Any = {_DATES[path.suffix]: None} if path.suffix in _DATES else {}
    form = path.suffix.removeprefix(".")
    replace_atomically(path, lambda stream: figure.savefig(stream, format=form, dpi=160, metadata=metadata))
