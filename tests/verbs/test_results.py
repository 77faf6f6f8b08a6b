"""Means over the seeds of a benchmark."""

from __future__ import annotations

import pytest

from mdialeval.records import Agreement
from mdialeval.verbs.cells import Cell
from mdialeval.verbs.results import over_seeds


def _row(value: float | None, reason: str = "") -> Agreement:
    return Agreement("english", "set", "en", "sensibleness", "overall", 9, 9, "spearman", value, reason=reason)


def test_a_mean_over_fewer_seeds_says_so() -> None:
    found = {
        Cell("english", None, None, 1): [_row(0.2)],
        Cell("english", None, None, 2): [_row(0.4)],
        Cell("english", None, None, 3): [_row(None, "constant predictions")],
    }
    ((cell, mean, spread),) = over_seeds(found)
    assert (cell.seed, mean.value) == (-1, pytest.approx(0.3))
    assert spread == pytest.approx(0.1414, abs=1e-4)
    assert mean.reason == "1 of 3 seeds have no value; constant predictions"
