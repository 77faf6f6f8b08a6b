"""Statistics against scipy and against tables worked out by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mdialeval.agreement.correlations import STATISTICS, correlation, p_value, resampled
from mdialeval.agreement.pairs import calibrate, calibrated_chance, chance, pair_counts
from mdialeval.errors import ConfigError, DataError

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall_tau_b": stats.kendalltau}
RANDOM = np.random.default_rng(7)


def tied_sample(seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    n = int(random.integers(5, 80))
    x = random.integers(0, random.integers(2, 40), n).astype(float)
    y = random.integers(0, random.integers(2, 9), n).astype(float)
    x[:2], y[:2] = (0, 1), (0, 1)
    return x, y


@pytest.mark.parametrize("statistic", SCIPY)
@pytest.mark.parametrize("seed", range(25))
def test_equals_scipy_with_ties(statistic: str, seed: int) -> None:
    x, y = tied_sample(seed)
    expected = SCIPY[statistic](x, y)
    assert correlation(statistic, x, y).value == pytest.approx(expected.statistic, abs=1e-12)
    assert p_value(statistic, x, y) == pytest.approx(expected.pvalue, abs=1e-9)


@pytest.mark.parametrize("statistic", SCIPY)
@pytest.mark.parametrize("seed", range(25))
def test_a_resample_equals_scipy_on_the_copied_rows(statistic: str, seed: int) -> None:
    x, y = tied_sample(seed)
    drawn = np.random.default_rng(seed).integers(0, len(x), (6, len(x)))
    weights = np.stack([np.bincount(d, minlength=len(x)) for d in drawn], axis=1).astype(float)
    got = resampled(statistic, x, y, weights)
    for value, rows in zip(got, drawn, strict=True):
        if np.ptp(x[rows]) == 0 or np.ptp(y[rows]) == 0:
            assert np.isnan(value)
        else:
            assert value == pytest.approx(SCIPY[statistic](x[rows], y[rows]).statistic, abs=1e-10)


def test_midranks_on_the_published_ties_example() -> None:
    """Input of Lightning-AI/torchmetrics#444; scipy.stats.spearmanr gives 0.0755, ordinal ranks would give 0.190."""
    value = correlation("spearman", [3, 3, 1, 2, 2, 2, 5, 5], [1, 4, 4, 2, 2, 5, 5, 3]).value
    assert value == pytest.approx(0.0755, abs=5e-4)


def test_auc_equals_the_share_of_ordered_pairs() -> None:
    x, y = np.round(RANDOM.normal(size=60), 1), RANDOM.integers(0, 2, 60).astype(float)
    wins = [(a > b) + 0.5 * (a == b) for a in x[y == 1] for b in x[y == 0]]
    assert correlation("auc", x, y).value == pytest.approx(float(np.mean(wins)))
    weights = RANDOM.integers(0, 3, (60, 1)).astype(float)
    rows = np.repeat(np.arange(60), weights[:, 0].astype(int))
    wins = [(a > b) + 0.5 * (a == b) for a in x[rows][y[rows] == 1] for b in x[rows][y[rows] == 0]]
    assert resampled("auc", x, y, weights)[0] == pytest.approx(float(np.mean(wins)))


def test_auc_wants_two_levels() -> None:
    assert correlation("auc", [1, 2, 3, 4], [1, 2, 3, 3]) == (None, "ratings are not binary (3 levels)")


def brute_counts(x: np.ndarray, y: np.ndarray) -> list[int]:
    counts = [0, 0, 0, 0, 0, 0]
    for i, j in itertools.combinations(range(len(x)), 2):
        a, b = np.sign(x[i] - x[j]), np.sign(y[i] - y[j])
        for k, found in enumerate((True, a * b > 0, a * b < 0, a == 0, b == 0, a == 0 and b == 0)):
            counts[k] += bool(found)
    return counts


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 3)), min_size=3, max_size=24))
def test_pair_counts_equal_counting_by_hand(rows: list[tuple[int, int, int]]) -> None:
    x, y, weight = (np.array(column, float) for column in zip(*rows, strict=True))
    copied = np.repeat(np.arange(len(x)), weight.astype(int))
    got = pair_counts(x, y, weight[:, None])
    assert [int(c[0]) for c in got[:6]] == brute_counts(x[copied], y[copied])


def test_acc_eq_by_hand() -> None:
    """Six pairs: (1,2) tie-tie, (1,3) and (2,3) ordered alike, (1,4) and (2,4) ordered alike, (3,4) tied by x alone."""
    assert correlation("acc_eq", [1, 1, 2, 2], [1, 1, 2, 3]).value == pytest.approx(5 / 6)


def test_acc_eq_in_a_resample_leaves_copies_out() -> None:
    x, y = np.array([1.0, 1, 2, 2]), np.array([1.0, 1, 2, 3])
    # rows 1, 3, 3, 4: the pair of the two copies of row 3 compares nothing; (1,3) twice and (1,4) right, (3,4) twice wrong
    assert resampled("acc_eq", x, y, np.array([[1.0], [0], [2], [1]]))[0] == pytest.approx(3 / 5)


@pytest.mark.parametrize("seed", range(10))
def test_calibration_finds_the_best_of_all_thresholds(seed: int) -> None:
    random = np.random.default_rng(seed)
    x, y = random.normal(size=15), random.integers(0, 3, 15).astype(float)
    i, j = np.triu_indices(15, 1)
    gaps = np.abs(x[i] - x[j])
    tried = [
        np.mean(np.where(gaps <= t + 1e-12, 0, np.sign(x[i] - x[j])) == np.sign(y[i] - y[j]))
        for t in np.r_[0.0, np.sort(gaps)]
    ]
    found = calibrate(x, y)
    assert found.accuracy == pytest.approx(max(tried))
    assert correlation("acc_eq_calibrated", x, y).value == pytest.approx(max(tried))


def test_calibration_cannot_be_worse_than_none() -> None:
    x, y = tied_sample(3)
    assert calibrate(x, y).accuracy >= correlation("acc_eq", x, y).value


def test_chance_is_the_mean_over_all_permutations() -> None:
    x, y = np.array([1.0, 1, 2, 3, 4]), np.array([1.0, 2, 2, 2, 3])
    everything = [correlation("acc_eq", x, np.array(p)).value for p in itertools.permutations(y)]
    assert chance(x, y) == pytest.approx(float(np.mean(everything)))


def test_calibrated_chance_is_seeded_and_no_better_than_a_good_scorer() -> None:
    y = RANDOM.integers(1, 4, 60).astype(float)
    x = y + RANDOM.normal(size=60) * 0.3
    assert calibrated_chance(x, y, 20, seed=1) == calibrated_chance(x, y, 20, seed=1)
    assert calibrated_chance(x, y, 20, seed=1) < calibrate(x, y).accuracy - 0.1


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        ([1, 1, 1, 1], [1, 2, 3, 4], "constant predictions"),
        ([0.3, 0.1 + 0.2, 0.3], [1, 2, 3], "constant predictions"),
        ([1, 2, 3, 4], [2, 2, 2, 2], "constant ratings"),
        ([1], [2], "fewer than 3 rows"),
        ([1, 2], [2, 1], "fewer than 3 rows"),
        ([], [], "fewer than 3 rows"),
    ],
)
def test_undefined_is_none_with_a_reason(statistic: str, x: list[float], y: list[float], reason: str) -> None:
    assert correlation(statistic, x, y) == (None, reason)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_refused(bad: float) -> None:
    with pytest.raises(DataError, match="row 2 of the predictions"):
        correlation("pearson", [1, bad, 3], [1, 2, 3])
    with pytest.raises(DataError, match="row 3 of the ratings"):
        correlation("pearson", [1, 2, 3], [1, 2, bad])


def test_sides_of_different_length_and_unknown_statistics_are_refused() -> None:
    with pytest.raises(DataError, match="same rows"):
        correlation("pearson", [1, 2, 3], [1, 2])
    with pytest.raises(ConfigError, match="did you mean 'spearman'"):
        correlation("spearmann", [1, 2, 3], [1, 2, 3])


def test_large_offsets_keep_their_digits() -> None:
    x, y = RANDOM.normal(size=200), RANDOM.normal(size=200)
    assert correlation("pearson", x + 1e9, y).value == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-6)
    assert correlation("pearson", x * 1e-200, y).value == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-9)


def test_perfect_agreement_is_exactly_one() -> None:
    x = RANDOM.normal(size=50)
    for statistic in ("pearson", "spearman", "kendall_tau_b"):
        assert correlation(statistic, x, 2 * x + 1).value == pytest.approx(1.0, abs=1e-12)
        assert correlation(statistic, x, 2 * x + 1).value <= 1.0
