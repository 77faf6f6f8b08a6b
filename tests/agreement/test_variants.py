"""Figures of variants over several languages."""

from __future__ import annotations

import pytest

from mdialeval.agreement.variants import figure, measures
from mdialeval.records import Example, Turn


def test_a_mean_over_fewer_languages_says_which_and_why() -> None:
    examples = [
        Example(str(i), code, (Turn("Hi."),), Turn("Yes."), {"overall": float(i)}, group=str(i))
        for code in ("de", "en")
        for i in range(4)
    ]
    (measure,) = measures("set", examples, "sensibleness", "spearman")
    scores = {(str(i), "en"): float(i) for i in range(4)} | {(str(i), "de"): 0.5 for i in range(4)}
    value, reason = figure(measure, scores)
    assert value == pytest.approx(1.0)
    assert reason == "de: constant predictions"
