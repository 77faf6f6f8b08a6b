"""Predictions joined with ratings."""

from __future__ import annotations

import csv
import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from mdialeval.agreement.agree import correlate
from mdialeval.agreement.compare import compare, enough_resamples
from mdialeval.errors import DataError
from mdialeval.records import Agreement, Example, Prediction, Turn


def example(i: int, rating: float, language: str = "en", **more: object) -> Example:
    given = {"group": f"d{i // 2}", **more}
    return Example(f"e{i}", language, (Turn("Hi."),), Turn("Hello."), {"overall": rating}, **given)  # type: ignore[arg-type]


def prediction(i: int, score: float | None, language: str = "en", scorer: str = "s") -> Prediction:
    return Prediction(f"e{i}", language, scorer, "sensibleness", score, "ok" if score is not None else "refused")


RATINGS = [1.0, 2, 2, 3, 5, 4, 4, 1, 3, 5]
SCORES = [0.1, 0.3, 0.2, 0.35, 0.9, 0.6, 0.5, 0.2, 0.4, 0.7]


def rows(language: str = "en") -> tuple[list[Example], list[Prediction]]:
    examples = [example(i, r, language) for i, r in enumerate(RATINGS)]
    return examples, [prediction(i, s, language) for i, s in enumerate(SCORES)]


def only(agreements: list[Agreement], language: str, statistic: str) -> Agreement:
    (found,) = [a for a in agreements if a.language == language and a.statistic == statistic]
    return found


def test_every_language_and_their_mean() -> None:
    examples, predictions = rows()
    more, reverse = rows("de")
    reverse = [replace(p, score=-(p.score or 0.0)) for p in reverse]
    found = correlate(predictions + reverse, examples + more, dataset="toy", resamples=200)
    english, german = only(found, "en", "spearman"), only(found, "de", "spearman")
    assert english.value == pytest.approx(stats.spearmanr(SCORES, RATINGS).statistic)
    assert german.value == pytest.approx(-english.value)
    assert (english.n, english.n_scored, english.scorer_dimension, english.dimension) == (
        10,
        10,
        "sensibleness",
        "overall",
    )
    assert english.low < english.value < english.high
    mean = only(found, "mean", "spearman")
    assert mean.value == pytest.approx(0.0)
    assert mean.low == pytest.approx(
        mean.high, abs=1e-9
    )  # both languages are drawn together, so they cancel in each draw
    assert (mean.n, mean.reason) == (20, "mean of 2 of 2 languages")


def test_a_constant_language_is_skipped_by_name() -> None:
    examples, predictions = rows()
    more, flat = rows("de")
    flat = [replace(p, score=0.5) for p in flat]
    found = correlate(predictions + flat, examples + more, dataset="toy", resamples=50)
    german, mean = only(found, "de", "pearson"), only(found, "mean", "pearson")
    assert (german.value, german.reason) == (None, "constant predictions")
    assert mean.value == only(found, "en", "pearson").value
    assert mean.reason == "mean of 1 of 2 languages; 1 skipped (de: constant predictions)"


def test_few_dialogues_give_a_value_without_an_interval_and_say_so() -> None:
    examples, predictions = rows()
    more, others = rows("de")
    found = correlate(predictions + others[:6], examples + more, dataset="toy", resamples=50)
    german, mean = only(found, "de", "pearson"), only(found, "mean", "pearson")
    assert german.value is not None
    assert (german.low, german.reason) == (None, "no interval: 3 dialogue groups, at least 5 are needed")
    assert (mean.low, mean.reason) == (None, "mean of 2 of 2 languages; no interval, since there is none for de")


def test_refused_rows_are_counted_and_bounded() -> None:
    examples, predictions = rows()
    predictions[4] = prediction(4, None)
    del predictions[0]
    found = correlate(predictions, examples, dataset="toy", resamples=0)
    row = only(found, "en", "spearman")
    assert (row.n, row.n_scored, row.low) == (10, 8, None)
    kept = [1, 2, 3, 5, 6, 7, 8, 9]
    assert row.value == pytest.approx(stats.spearmanr([SCORES[i] for i in kept], [RATINGS[i] for i in kept]).statistic)
    worst, best = only(found, "en", "spearman_missing_worst"), only(found, "en", "spearman_missing_best")
    assert worst.value < row.value <= best.value
    assert worst.value == pytest.approx(
        stats.spearmanr([0.7, *SCORES[1:4], 0.2, *SCORES[5:]], RATINGS).statistic  # e0 rated 1 gets the top score
    )


def test_a_language_without_predictions_is_a_row_not_a_gap() -> None:
    examples, predictions = rows()
    more, _ = rows("ja")
    row = only(correlate(predictions, examples + more, dataset="toy", resamples=0), "ja", "pearson")
    assert (row.n, row.n_scored, row.value, row.reason) == (10, 0, None, "no row has a score")


def test_unrated_rows_do_not_count() -> None:
    examples, predictions = rows()
    examples.append(replace(example(99, 1.0), ratings={}))
    predictions.append(prediction(99, 0.2))
    assert only(correlate(predictions, examples, dataset="toy", resamples=0), "en", "pearson").n == 10


def test_nothing_joins_names_ids_of_both_sides() -> None:
    examples, predictions = rows()
    with pytest.raises(
        DataError, match=r"none of the 10 predictions of s \(sensibleness\).*'x-e0' \(en\).*'e0' \(en\)"
    ):
        correlate([replace(p, example_id="x-" + p.example_id) for p in predictions], examples, dataset="toy")


def test_some_strangers_are_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    examples, predictions = rows()
    with caplog.at_level(logging.WARNING):
        correlate([*predictions, prediction(50, 0.1)], examples, dataset="toy", resamples=0)
    assert "1 predictions have no example in toy: 'e50' (en)" in caplog.text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e, p: (e + e[:1], p), "'e0' occurs twice in en"),
        (lambda e, p: (e, p + p[:1]), "scores example 'e0' in en twice"),
        (lambda e, p: (e, [replace(p[0], score=float("nan")), *p[1:]]), "the score is nan"),
        (lambda e, p: (e, [replace(p[0], status="refused"), *p[1:]]), "status 'refused'"),
        (lambda e, p: ([replace(e[0], ratings={"overall": float("inf")}), *e[1:]], p), "is rated inf"),
        (lambda e, p: ([replace(x, ratings={}) for x in e], p), "none of its 10 examples is rated"),
        (lambda e, p: (e, []), "no predictions"),
    ],
)
def test_bad_input_is_named(change: object, message: str) -> None:
    examples, predictions = change(*rows())  # type: ignore[operator]
    with pytest.raises(DataError, match=message):
        correlate(predictions, examples, dataset="toy", resamples=0)


def test_chance_stands_beside_pairwise_accuracy() -> None:
    examples, predictions = rows()
    found = correlate(predictions, examples, dataset="toy", statistics=["acc_eq", "acc_eq_calibrated"], resamples=0)
    for statistic in ("acc_eq", "acc_eq_calibrated"):
        assert only(found, "en", f"{statistic}_chance").value < only(found, "en", statistic).value


def test_system_level_needs_five_systems() -> None:
    random = np.random.default_rng(1)
    quality = {f"m{k}": float(k) for k in range(6)}
    examples = [
        example(i, quality[f"m{i % 6}"] + random.normal(), group=f"d{i // 6}", system=f"m{i % 6}") for i in range(120)
    ]
    predictions = [prediction(i, quality[f"m{i % 6}"] + 3 * random.normal()) for i in range(120)]
    row = only(correlate(predictions, examples, dataset="toy", resamples=100), "en", "system_pearson")
    x = [np.mean([p.score for p in predictions[k::6]]) for k in range(6)]
    y = [np.mean([e.ratings["overall"] for e in examples[k::6]]) for k in range(6)]
    assert row.n == 6
    assert row.value == pytest.approx(stats.pearsonr(x, y).statistic)
    assert row.low <= row.value <= row.high
    four = [replace(e, system=f"m{i % 4}") for i, e in enumerate(examples)]
    assert not [
        a for a in correlate(predictions, four, dataset="toy", resamples=0) if a.statistic.startswith("system_")
    ]


def test_row_order_does_not_matter() -> None:
    examples, predictions = rows()
    shuffled = correlate(predictions[::-1], examples[::-1], dataset="toy", resamples=100)
    for row in correlate(predictions, examples, dataset="toy", resamples=100):
        other = only(shuffled, row.language, row.statistic)
        assert (other.n, other.value, other.low) == (row.n, pytest.approx(row.value), pytest.approx(row.low))


def test_compare_is_paired_and_corrected() -> None:
    random = np.random.default_rng(2)
    examples = [example(i, float(random.integers(1, 6))) for i in range(100)]
    noise = [prediction(i, random.normal(), scorer="noise") for i in range(100)]
    good = [prediction(i, e.ratings["overall"] + random.normal(), scorer="good") for i, e in enumerate(examples)]
    fair = [prediction(i, e.ratings["overall"] + 2 * random.normal(), scorer="fair") for i, e in enumerate(examples)][
        :90
    ]
    found = {(c.first[0], c.second[0]): c for c in compare(noise + good + fair, examples, dataset="toy", resamples=200)}
    assert set(found) == {("noise", "good"), ("noise", "fair"), ("good", "fair")}
    assert found["noise", "good"].n == 100
    assert found["noise", "fair"].n == 90
    assert found["noise", "good"].high < 0
    assert found["noise", "good"].p_value == pytest.approx(3 * 2 / 201)


def test_compare_says_where_no_p_value_can_be_small(caplog: pytest.LogCaptureFixture) -> None:
    random = np.random.default_rng(2)
    examples = [example(i, float(random.integers(1, 6))) for i in range(30)]
    rows = [prediction(i, random.normal(), scorer=name) for name in ("one", "two", "three") for i in range(30)]
    with caplog.at_level(logging.WARNING):
        compare(rows, examples, dataset="toy", resamples=enough_resamples(3))
    assert not caplog.text
    with caplog.at_level(logging.WARNING):
        compare(rows, examples, dataset="toy", resamples=50)
    assert (
        "toy: 3 comparisons a language share 50 resamples, so that no corrected p-value can be below 0.12"
        in caplog.text
    )
    assert "set correlate.resamples to 119 or more" in caplog.text


@pytest.mark.shared_data
def test_the_length_baseline_on_real_ratings(shared_data: Path) -> None:
    """persona-usr: longer responses are rated higher, so length minus does worse than chance there."""
    with open(shared_data / "xdial" / "persona-usr.csv", encoding="utf-8-sig", newline="") as stream:
        table = list(csv.DictReader(stream))
    assert len(table) == 300
    examples, predictions = [], []
    for i, row in enumerate(table):
        for name, code in (("english", "en"), ("chinese", "zh"), ("spanish", "es")):
            response = row[f"{name}_res"]
            rating = {"overall": float(row["ratings"])}
            examples.append(
                Example(f"p{i}", code, (Turn(row[f"{name}_ctx"]),), Turn(response), rating, row["english_ctx"])
            )
            predictions.append(Prediction(f"p{i}", code, "brevity", "length", -float(len(response)), "ok"))
    found = correlate(predictions, examples, dataset="persona-usr", resamples=200)
    lengths = [-len(row["english_res"]) for row in table]
    expected = stats.spearmanr(lengths, [float(row["ratings"]) for row in table]).statistic
    assert only(found, "en", "spearman").value == pytest.approx(expected, abs=1e-12)
    assert only(found, "mean", "spearman").high < 0.05
