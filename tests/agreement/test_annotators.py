"""A judge that is asked again: its agreement with itself, per language."""

from __future__ import annotations

import numpy as np
import pytest

from mdialeval.agreement.annotators import krippendorff_alpha, repeated_scores, self_agreements
from mdialeval.records import Prediction


def asked(samples: str, language: str = "en", example: str = "e", scorer: str = "judge") -> Prediction:
    return Prediction(example, language, scorer, "sensibleness", 3.0, "ok", {"samples": samples})


def test_one_row_a_judge_criterion_and_language() -> None:
    rows = [asked("1,1,1"), asked("5,5,5", example="f"), asked("2,4,3", "ja"), asked("4,2,", "ja", "f")]
    rows.append(Prediction("e", "en", "length", "length", 7.0, "ok"))
    english, japanese = self_agreements(rows, "talk")
    assert (english.language, english.repeats, english.n, english.n_paired) == ("en", 3, 2, 2)
    assert english.alpha == 1.0 and english.spread == 0.0
    assert japanese.alpha is not None and japanese.alpha < 0.2
    assert japanese.spread == pytest.approx((np.std([2, 4, 3]) + 1.0) / 2)
    assert self_agreements(rows[-1:], "talk") == []


def test_what_is_undefined_says_why() -> None:
    (constant,) = self_agreements([asked("3,3"), asked("3,3", example="f")], "talk")
    assert (constant.alpha, constant.reason, constant.spread) == (None, "constant ratings", 0.0)
    (alone,) = self_agreements([asked("3,"), asked(",", example="f")], "talk")
    assert (alone.alpha, alone.spread, alone.n, alone.n_paired) == (None, None, 2, 0)
    assert "two ratings" in alone.reason


def test_alpha_falls_with_the_noise_of_the_judge() -> None:
    random = np.random.default_rng(3)
    truth = random.normal(size=400)
    found = []
    for noise in (0.1, 0.5, 1.0, 2.0):
        units = [list(t + noise * random.normal(size=3)) for t in truth]
        alpha = krippendorff_alpha(units, "interval").value
        assert alpha == pytest.approx(1 / (1 + noise**2), abs=0.08), "the share of the variance that is not noise"
        found.append(alpha)
    assert found == sorted(found, reverse=True)


def test_missing_repetitions_stay_missing() -> None:
    assert repeated_scores([asked("2,,4.5"), asked(",")]) == [[2.0, None, 4.5], [None, None]]
