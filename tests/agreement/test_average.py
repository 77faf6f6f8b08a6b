"""The mean of standard scores: by language and dimension, and silent about nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mdialeval.agreement.combine import average, z_scores
from mdialeval.errors import DataError
from mdialeval.records import Example, Prediction, Turn

EXAMPLES = [Example(f"e{i}", code, (), Turn("Hi.")) for code in ("en", "de") for i in range(3)]


def predictions(scorer: str, dimension: str, values: list[float | None]) -> list[Prediction]:
    return [
        Prediction(e.id, e.language, scorer, dimension, value, "failed" if value is None else "ok")
        for e, value in zip(EXAMPLES, values, strict=True)
    ]


def test_scales_do_not_matter_and_languages_are_standardised_apart() -> None:
    one = predictions("one", "good", [1, 2, 3, 101, 102, 103])
    two = predictions("two", "good", [-300, -200, -100, 0.1, 0.2, 0.3])
    found = average([*one, *two], EXAMPLES, "both")
    assert [(p.example_id, p.language, p.scorer, p.dimension) for p in found] == [
        (e.id, e.language, "both", "good") for e in EXAMPLES
    ]
    assert [p.score for p in found] == pytest.approx([1 / 6, 1 / 2, 5 / 6] * 2)
    root = 1.5**0.5
    assert [p.score for p in average([*one, *two], EXAMPLES, "both", "scores")] == pytest.approx([-root, 0, root] * 2)


def test_by_ranks_a_scorer_with_scores_at_both_ends_counts_no_more_than_another() -> None:
    ends = predictions("ends", "good", [0.001, 0.002, 0.999, 0.001, 0.002, 0.999])
    even = predictions("even", "good", [3, 1, 2, 3, 1, 2])
    ranks = [p.score for p in average([*ends, *even], EXAMPLES, "both")][:3]
    scores = [p.score for p in average([*ends, *even], EXAMPLES, "both", "scores")][:3]
    assert ranks == pytest.approx([1 / 2, 1 / 3, 2 / 3])
    assert scores == pytest.approx([0.2583, -0.9654, 0.7071], abs=1e-4)  # of the spread more is that of `ends`


def test_only_what_two_members_measure_is_joined() -> None:
    rows = [
        *predictions("one", "good", [1, 2, 3, 1, 2, 3]),
        *predictions("one", "alone", [3, 2, 1, 3, 2, 1]),
        *predictions("two", "good", [3, 2, 1, 1, 2, 3]),
    ]
    found = average(rows, EXAMPLES, "both")
    assert {p.dimension for p in found} == {"good"}
    assert [p.score for p in found[:3]] == pytest.approx([0.5, 0.5, 0.5])
    with pytest.raises(DataError, match=r"no dimension has scores of two of one \(alone\), two \(good\)"):
        average([*predictions("one", "alone", [1] * 6), *predictions("two", "good", [1] * 6)], EXAMPLES, "both")


def test_a_row_without_one_of_the_scores_fails_and_names_the_member() -> None:
    rows = [*predictions("one", "good", [1, None, 3, 1, 2, 3]), *predictions("two", "good", [1, 2, 3, 1, 2, 3])]
    found = average(rows, EXAMPLES, "both")
    assert [p.status for p in found] == ["ok", "failed", "ok", "ok", "ok", "ok"]
    assert found[1].score is None and found[1].detail == {"missing": "one"}


def test_a_member_that_scored_nothing_is_missed_and_not_left_out() -> None:
    rows = [
        *predictions("one", "good", [1, 2, 3, 1, 2, 3]),
        *predictions("two", "good", [1, 2, 3, 1, 2, 3]),
        *predictions("three", "good", [None] * 6),
    ]
    found = average(rows, EXAMPLES, "all")
    assert {(p.status, p.score, p.detail["missing"]) for p in found} == {("failed", None, "three")}


def test_equal_scores_have_no_spread_whatever_rounding_says() -> None:
    assert z_scores([0.1, 0.1, 0.1, None]) == [0.0, 0.0, 0.0, None]


def test_a_message_names_the_data_set() -> None:
    with pytest.raises(DataError, match=r"^rated: nothing to average"):
        average(predictions("one", "good", [1] * 6), EXAMPLES, "both", dataset="rated")


def test_a_row_of_which_a_member_read_only_a_part_says_so() -> None:
    one, two = (predictions(name, "good", [1, 2, 3, 1, 2, 3]) for name in ("one", "two"))
    two[1] = replace(two[1], status="truncated")
    assert [p.status for p in average([*one, *two], EXAMPLES, "both")] == ["ok", "truncated", "ok", "ok", "ok", "ok"]
