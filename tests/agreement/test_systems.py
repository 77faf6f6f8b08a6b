"""Systems as one scorer sees them."""

from __future__ import annotations

import pytest

from mdialeval.agreement.systems import by_system
from mdialeval.records import Example, Prediction, Turn


def _rated(name: str, group: str, system: str, rating: float) -> Example:
    return Example(name, "en", (Turn("Hi."),), Turn("Yes."), {"sensibleness": rating}, group, system)


def _scored(name: str, score: float | None, dimension: str = "sensibleness") -> Prediction:
    return Prediction(name, "en", "s", dimension, score, "ok" if score is not None else "refused")


def test_win_rates_are_within_a_dialogue() -> None:
    examples = [
        _rated(f"{group}-{system}", group, system, rating)
        for group in ("a", "b")
        for system, rating in (("good", 1.0), ("bad", 0.0))
    ]
    scores = {"a-good": 0.3, "a-bad": 0.2, "b-good": 0.9, "b-bad": 0.9}
    good, bad = by_system([_scored(name, score) for name, score in scores.items()], examples, "talk")
    assert (good.system, good.n, good.rating, good.beaten) == ("good", 2, 1.0, None)
    assert good.score == pytest.approx(0.6)
    assert (bad.system, bad.beaten) == ("bad", 0.75)  # one win and one tie


def test_missing_scores_other_dimensions_and_nameless_systems_are_left_out() -> None:
    examples = [_rated("a-good", "a", "good", 1.0), _rated("a-bad", "a", "bad", 0.0)]
    assert list(by_system([_scored("a-good", 0.5, "length"), _scored("a-bad", 0.1, "length")], examples, "talk")) == []
    assert list(by_system([_scored("a-good", None), _scored("a-bad", 0.1)], examples, "talk")) == []
    nameless = [*examples, _rated("a-x", "a", "", 0.5)]
    assert list(by_system([_scored("a-good", 0.5), _scored("a-bad", 0.1)], nameless, "talk")) == []


def test_systems_that_share_the_best_rating_are_all_the_reference() -> None:
    names = (("good", 1.0), ("fine", 1.0), ("bad", 0.0))
    examples = [_rated(f"a-{system}", "a", system, rating) for system, rating in names]
    scored = [_scored("a-good", 0.9), _scored("a-fine", 0.1), _scored("a-bad", 0.5)]
    assert [(row.system, row.beaten) for row in by_system(scored, examples, "talk")] == [
        ("fine", None),
        ("good", None),
        ("bad", 0.5),
    ]
