"""Meta-evaluation of a quality estimator: how well it agrees with people, and what its selection is worth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from mdialeval.errors import DataError
from mdialeval.rank.gold import Gold
from mdialeval.rank.protocol import QualityEstimator
from mdialeval.rank.select import check_k, cut, rank_scores

Array = NDArray[np.float64]
DEFAULT_K = (5.0, 10.0, 20.0, 50.0, 75.0, 100.0)


@dataclass(frozen=True, slots=True)
class Correlation:
    """One statistic with a 95 % bootstrap interval; None, with a reason, where it is undefined."""

    statistic: str
    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class KeptQuality:
    """Mean gold score of the best k per cent.

    Attributes:
        mean, low, high: of what the estimator keeps, with a 95 % bootstrap interval.
        random, random_low, random_high: of a random choice as large, with the range of 95 % of such choices.
        oracle: of the best choice as large.
    """

    k: float
    n: int
    mean: float
    low: float
    high: float
    random: float
    random_low: float
    random_high: float
    oracle: float


@dataclass(frozen=True, slots=True)
class QeEvaluation:
    """An estimator against the gold scores of one language.

    Attributes:
        n: gold rows.
        n_scored: rows among them that have a score; everything is computed on these.
    """

    language: str
    n: int
    n_scored: int
    correlations: tuple[Correlation, ...]
    kept: tuple[KeptQuality, ...]


def evaluate_estimator(
    estimator: QualityEstimator, gold: Sequence[Gold], k: Sequence[float] = DEFAULT_K, *, seed: int = 13
) -> list[QeEvaluation]:
    """Score the gold rows and compare, one language at a time, in order of appearance."""
    sign = 1.0 if estimator.higher_is_better else -1.0
    scores = [sign * score for score in estimator.estimate([g.translation for g in gold])]
    return evaluate_scores(scores, gold, k, seed=seed)


def evaluate_scores(
    scores: Sequence[float], gold: Sequence[Gold], k: Sequence[float] = DEFAULT_K, *, seed: int = 13
) -> list[QeEvaluation]:
    """Compare the scores (higher is better, NaN where there is none) of the gold rows, one language at a time.

    Raises:
        DataError: different numbers of scores and gold rows.
    """
    if len(scores) != len(gold):
        raise DataError(_unequal(len(scores), len(gold)))
    found = []
    for language in dict.fromkeys(g.translation.language for g in gold):
        rows = [i for i, g in enumerate(gold) if g.translation.language == language]
        found.append(
            meta_evaluate([scores[i] for i in rows], [gold[i].score for i in rows], k, language=language, seed=seed)
        )
    return found


def meta_evaluate(
    scores: ArrayLike,
    gold: ArrayLike,
    k: Sequence[float] = DEFAULT_K,
    *,
    language: str = "",
    seed: int = 13,
    resamples: int = 1000,
) -> QeEvaluation:
    """Compare scores with gold scores of the same rows, both higher is better.

    Args:
        scores: (N,) NaN where there is none; these rows are left out and counted.
        gold: (N,) finite.
        k: percentages, in (0, 100].
        language: for the record.
        seed: of the bootstrap.
        resamples: of the bootstrap, over rows (percentile intervals).

    Raises:
        DataError: different numbers of scores and gold scores.
    """
    estimated, wanted = np.asarray(scores, np.float64), np.asarray(gold, np.float64)
    if len(estimated) != len(wanted):
        raise DataError(_unequal(len(estimated), len(wanted)))
    check_k(k)
    there = ~np.isnan(estimated)
    x, y = estimated[there], wanted[there]
    draws = np.random.default_rng(seed).integers(0, max(len(x), 1), (resamples, len(x)))
    return QeEvaluation(
        language,
        len(wanted),
        len(x),
        tuple(_correlation(name, function, x, y, draws) for name, function in _STATISTICS.items()),
        tuple(_kept(x, y, value, draws, seed) for value in k) if len(x) else (),
    )


def _unequal(scores: int, gold: int) -> str:
    return (
        f"{scores} scores for {gold} gold scores: they must be the same rows in the same order; "
        f"row {min(scores, gold) + 1} is the first without a partner"
    )


def _pearson(x: Array, y: Array) -> float:
    return float(stats.pearsonr(x, y).statistic)


def _spearman(x: Array, y: Array) -> float:
    return float(stats.spearmanr(x, y).statistic)


def _kendall(x: Array, y: Array) -> float:
    return float(stats.kendalltau(x, y).statistic)


_STATISTICS: dict[str, Callable[[Array, Array], float]] = {
    "pearson": _pearson,
    "spearman": _spearman,
    "kendall_tau_b": _kendall,
}
_FEWER_DRAWS = {"kendall_tau_b": 200}  # a millisecond each


def _correlation(
    name: str, function: Callable[[Array, Array], float], x: Array, y: Array, draws: NDArray[np.int64]
) -> Correlation:
    if len(x) < 3:
        return Correlation(name, None, reason=f"only {len(x)} scored rows")
    for values, what in ((x, "scores"), (y, "gold scores")):
        if values.min() == values.max():
            return Correlation(name, None, reason=f"constant {what}")
    repeated = [
        function(x[rows], y[rows])
        for rows in draws[: _FEWER_DRAWS.get(name, len(draws))]
        if np.ptp(x[rows]) > 0 and np.ptp(y[rows]) > 0
    ]
    low, high = np.percentile(repeated, [2.5, 97.5]) if repeated else (math.nan, math.nan)
    return Correlation(name, function(x, y), float(low), float(high))


def _kept(x: Array, y: Array, k: float, draws: NDArray[np.int64], seed: int) -> KeptQuality:
    n = cut(len(x), k)

    def best(by: Array, values: Array) -> float:
        return float(values[rank_scores(by) <= n].mean())

    repeated = [best(x[rows], y[rows]) for rows in draws]
    low, high = np.percentile(repeated, [2.5, 97.5])
    shuffled = np.random.default_rng(seed + 1)
    chance = [y[shuffled.permutation(len(y))[:n]].mean() for _ in range(len(draws))]
    chance_low, chance_high = np.percentile(chance, [2.5, 97.5])
    return KeptQuality(
        k, n, best(x, y), float(low), float(high), float(y.mean()), float(chance_low), float(chance_high), best(y, y)
    )
