"""Bootstrap intervals of Pearson, Spearman and Kendall: this package against scipy in a loop over resamples.

Both sides use the same draws of dialogue groups, so the intervals must be equal.  The data are made here: tied
ratings of nine responses to each context, as in common rated sets.

    python scripts/benchmarks/correlate.py [--rows 900] [--resamples 1000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import statistics as summary
import time
from collections.abc import Callable

import numpy as np
from scipy import stats

from mdialeval.agreement.intervals import draw_groups, percentile, resample

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall_tau_b": stats.kendalltau}
CONFIDENCE = 0.95
Intervals = dict[str, tuple[float, float]]


def sample(rows: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Real-valued predictions, ratings in quarters from 1 to 5, nine rows a dialogue."""
    random = np.random.default_rng(0)
    quality = random.normal(size=rows)
    ratings = np.round(np.clip(3 + quality, 1, 5) * 4) / 4
    return quality + 2 * random.normal(size=rows), ratings, [f"d{i // 9}" for i in range(rows)]


def ours(x: np.ndarray, y: np.ndarray, groups: list[str], resamples: int) -> Intervals:
    """All resamples at once."""
    draws = draw_groups(groups, resamples, seed=1)
    found = {}
    for statistic in SCIPY:
        low, high, _ = percentile(resample(statistic, x, y, draws.columns(groups), draws), CONFIDENCE)
        assert low is not None and high is not None
        found[statistic] = (low, high)
    return found


def scipy_loop(x: np.ndarray, y: np.ndarray, groups: list[str], resamples: int) -> Intervals:
    """One resample after the other: copy the drawn rows, call scipy."""
    draws = draw_groups(groups, resamples, seed=1)
    members = [np.flatnonzero(np.array(groups) == name) for name in draws.names]
    values: dict[str, list[float]] = {statistic: [] for statistic in SCIPY}
    for counts in draws.counts:
        rows = np.concatenate([np.tile(m, c) for m, c in zip(members, counts, strict=True) if c])
        for statistic, function in SCIPY.items():
            values[statistic].append(float(function(x[rows], y[rows]).statistic))
    tails = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    return {statistic: tuple(np.quantile(v, tails)) for statistic, v in values.items()}  # type: ignore[misc]


def timed(side: Callable[..., Intervals], *arguments: object) -> tuple[float, Intervals]:
    """Seconds of processor time, so that other programs on the machine do not count, and the intervals."""
    start = time.process_time()
    found = side(*arguments)
    return time.process_time() - start, found


def main() -> None:
    """Run both sides in turn and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=900)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    x, y, groups = sample(options.rows)
    ours_s, peer_s, gap = [], [], 0.0
    for _ in range(options.rounds):
        seconds, found = timed(ours, x, y, groups, options.resamples)
        ours_s.append(seconds)
        seconds, expected = timed(scipy_loop, x, y, groups, options.resamples)
        peer_s.append(seconds)
        gap = max(gap, *(float(abs(a - b)) for s in SCIPY for a, b in zip(found[s], expected[s], strict=True)))
    print(f"{options.rows} rows, {options.resamples} resamples by dialogue, {options.rounds} rounds")
    print(f"{'statistic':<15}{'low':>9}{'high':>9}")
    for statistic, (low, high) in found.items():
        print(f"{statistic:<15}{low:>9.4f}{high:>9.4f}")
    mine, peer = summary.median(ours_s), summary.median(peer_s)
    print(f"mdialeval {mine:.3f} s, scipy in a loop {peer:.3f} s, largest difference {gap:.1e}")
    result = {"name": "correlate", "ours": round(mine, 4), "peer": round(peer, 4), "unit": "CPU seconds"}
    print(json.dumps(result | {"ratio": round(peer / mine, 2), "equal": bool(gap < 1e-9), "largest_difference": gap}))


if __name__ == "__main__":
    main()
