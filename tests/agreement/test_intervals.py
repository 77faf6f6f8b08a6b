"""Bootstrap intervals and tests of differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from mdialeval.agreement.correlations import STATISTICS, correlation
from mdialeval.agreement.intervals import bootstrap, draw_groups, percentile
from mdialeval.agreement.significance import holm, paired_bootstrap, randomisation, williams
from mdialeval.agreement.systems import resample_systems, system_means
from mdialeval.errors import ConfigError


def clustered(seed: int, groups: int = 40, size: int = 6) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Rows whose two sides share a dialogue effect, so that rows of one dialogue are far from independent."""
    random = np.random.default_rng(seed)
    effect = random.normal(size=groups)
    other = random.normal(size=groups)
    names = np.repeat(np.arange(groups), size)
    x = effect[names] + 0.2 * random.normal(size=groups * size)
    y = other[names] + 0.2 * random.normal(size=groups * size)
    return x, y, [f"d{g}" for g in names]


def test_group_intervals_cover_and_row_intervals_do_not() -> None:
    """The true correlation is 0: a 90 % interval by dialogue should hold it about 90 times in 100."""
    held = {"group": 0, "row": 0}
    for seed in range(100):
        x, y, groups = clustered(seed)
        for kind, by in (("group", groups), ("row", None)):
            low, high, _ = bootstrap("pearson", x, y, by, resamples=200, confidence=0.9, seed=seed)
            held[kind] += low <= 0 <= high
    assert held["group"] >= 80
    assert held["row"] < 65


@pytest.mark.parametrize("statistic", ["pearson", "spearman", "kendall_tau_b", "acc_eq", "acc_eq_calibrated"])
def test_same_seed_same_interval_and_another_seed_another(statistic: str) -> None:
    x, y, groups = clustered(1, groups=12)
    first = bootstrap(statistic, x, y, groups, resamples=100, seed=3)
    assert first == bootstrap(statistic, x, y, groups, resamples=100, seed=3)
    assert first != bootstrap(statistic, x, y, groups, resamples=100, seed=4)
    assert first.low < first.high


def test_interval_is_that_of_a_loop_over_copied_rows() -> None:
    x, y, groups = clustered(5, groups=10, size=4)
    draws = draw_groups(groups, 50, seed=2)
    rows = {g: [i for i, name in enumerate(groups) if name == g] for g in draws.names}
    values = []
    for counts in draws.counts:
        copied = [i for g, c in zip(draws.names, counts, strict=True) for i in rows[g] * c]
        values.append(stats.spearmanr(x[copied], y[copied]).statistic)
    low, high, _ = bootstrap("spearman", x, y, groups, resamples=50, seed=2)
    assert (low, high) == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])))


def test_few_groups_and_rare_ratings_say_why_there_is_no_interval() -> None:
    low, high, reason = bootstrap("pearson", [1, 2, 3], [1, 3, 2], ["d", "d", "d"])
    assert (low, high) == (None, None)
    assert reason == "no interval: 1 dialogue groups, at least 5 are needed"
    assert bootstrap("pearson", [1, 2, 3, 4, 5], [1, 3, 2, 4, 5], list("abcda")).low is None
    values = np.array([np.nan] * 6 + [0.1] * 4)
    assert percentile(values, 0.95).reason == "no interval: undefined in 6 of 10 resamples"
    assert bootstrap("pearson", [1, 1, 1], [1, 3, 2]).reason == "constant predictions"


def test_confidence_outside_its_range_is_refused() -> None:
    with pytest.raises(ConfigError, match="between 0 and 1"):
        percentile(np.array([0.1]), 95)


def test_paired_bootstrap_tells_a_good_scorer_from_noise_and_equal_ones_apart() -> None:
    random = np.random.default_rng(3)
    y = random.integers(1, 6, 200).astype(float)
    good, noise = y + random.normal(size=200), random.normal(size=200)
    better = paired_bootstrap("spearman", good, noise, y, resamples=400)
    assert better.low > 0
    assert better.p_value == pytest.approx(2 / 401)
    same = paired_bootstrap("spearman", good, 3 * good + 1, y, resamples=400)
    assert (same.value, same.p_value) == (0.0, 1.0)


def test_randomisation_agrees() -> None:
    random = np.random.default_rng(4)
    y = random.integers(1, 6, 120).astype(float)
    good, fair, noise = y + random.normal(size=120), y + 1.1 * random.normal(size=120), random.normal(size=120)
    for statistic in ("pearson", "spearman"):
        assert randomisation(statistic, good, 100 * noise, y, shuffles=200).p_value < 0.02
        assert randomisation(statistic, good, fair, y, shuffles=200).p_value > 0.02
    assert randomisation("spearman", good, noise, y, shuffles=50) == randomisation(
        "spearman", good, noise, y, shuffles=50
    )


def test_undefined_differences_name_the_scorer() -> None:
    assert paired_bootstrap("pearson", [1, 2, 3], [1, 1, 1], [1, 2, 4]).reason == "second scorer: constant predictions"
    assert randomisation("pearson", [1, 1, 1], [1, 2, 3], [1, 2, 4]).reason == "first scorer: constant predictions"


def test_williams_by_hand() -> None:
    """r1 .5, r2 .3, r12 .6, n 103: determinant .18, t = .2 * sqrt(102 * 1.6 / .98944) = 2.5686 on 100 degrees."""
    assert williams(0.5, 0.3, 0.6, 103) == pytest.approx(2 * stats.t.sf(2.5686, 100), abs=1e-5)
    assert williams(0.3, 0.5, 0.6, 103) == williams(0.5, 0.3, 0.6, 103)
    assert williams(0.5, 0.5, 1.0, 103) is None
    assert williams(0.5, 0.3, 0.6, 3) is None


def test_holm_by_hand() -> None:
    """Sorted .01 .02 .03: times 3, 2, 1 gives .03 .04 .03, made monotone .03 .04 .04."""
    assert holm([0.02, 0.01, 0.03]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize("statistic", STATISTICS)
def test_resampled_systems_equal_copied_rows(statistic: str) -> None:
    random = np.random.default_rng(5)
    n, groups = 60, [str(i // 6) for i in range(60)]
    systems = [f"s{i % 6}" for i in range(n)]
    x, y = np.round(random.normal(size=n), 1), random.integers(0, 3, n).astype(float)
    draws = draw_groups(groups, 40, seed=3)
    columns = draws.columns(groups)
    values = resample_systems(statistic, x, y, systems, columns, draws)
    for r, counts in enumerate(draws.counts):
        rows = np.repeat(np.arange(n), counts[columns])
        chosen = [systems[i] for i in rows]
        if len(set(chosen)) < 6:
            assert np.isnan(values[r])
            continue
        expected = correlation(statistic, *system_means(x[rows], y[rows], chosen)).value
        assert values[r] == pytest.approx(np.nan if expected is None else expected, abs=1e-9, nan_ok=True)
