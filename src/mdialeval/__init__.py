"""Evaluate open-domain dialogue in many languages.

The verbs of the command line are functions here: ``mdialeval.run("configs/quickstart.yaml")``.
"""

__version__ = "0.1.0"

from mdialeval.api import (
    Outcome,
    catalogue,
    check,
    correlate,
    export,
    rank,
    report,
    rows,
    run,
    score,
    show,
    train,
    translate,
)

__all__ = [
    "Outcome",
    "catalogue",
    "check",
    "correlate",
    "export",
    "rank",
    "report",
    "rows",
    "run",
    "score",
    "show",
    "train",
    "translate",
]
