"""How good a network is on held-out pairs, counted once a row whatever the number of processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats


class DevFigures(NamedTuple):
    """Figures on held-out pairs.

    Attributes:
        loss: mean loss a pair; lower is better.
        statistic: ``auc`` with labels of 0 and 1, else ``spearman``.
        value: in [0, 1] or [-1, 1], higher is better; None where undefined (``reason``).
        accuracy: share of pairs on the right side of .5; None for labels between 0 and 1.
        spread: standard deviation of the scores.
        mean_loss: loss of always predicting the labels' mean; the network must stay below it.
        n: pairs.
    """

    loss: float
    statistic: str
    value: float | None
    accuracy: float | None
    spread: float
    mean_loss: float
    n: int
    reason: str = ""

    def better_than(self, other: DevFigures | None) -> bool:
        """Whether to prefer this checkpoint: by the statistic, then the loss.

        Constant predictions are never preferred; where the dev labels are constant only the loss can tell.
        """
        if self.reason == "constant predictions":
            return False
        if other is None:
            return True
        if self.value is None or other.value is None:
            return self.loss < other.loss
        return (round(self.value, 6), -self.loss) > (round(other.value, 6), -other.loss)


def dev_figures(
    ids: Sequence[int], scores: Sequence[float], losses: Sequence[float], labels: Sequence[float], loss: str
) -> DevFigures:
    """Figures of gathered predictions.

    Processes get equally long parts, so rows come back more than once: the ids tell.

    Args:
        ids: row of each prediction, repeats allowed.
        scores: higher is better.
        losses: of each prediction.
        labels: of each row, by id.
        loss: ``bce`` or ``mse``, for the loss of the mean predictor.
    """
    first = dict(zip(reversed(ids), range(len(ids) - 1, -1, -1), strict=True))
    if sorted(first) != list(range(len(labels))):
        raise RuntimeError(f"{len(first)} of {len(labels)} dev rows came back")  # ours, never the user's mistake
    at = [first[i] for i in range(len(labels))]
    score = np.array([scores[i] for i in at])
    label = np.array(labels, dtype=float)
    value, statistic, reason = rank_agreement(score, label)
    binary = set(label.tolist()) <= {0.0, 1.0}
    return DevFigures(
        float(np.mean([losses[i] for i in at])),
        statistic,
        value,
        float(np.mean((score > 0.5) == (label > 0.5))) if binary else None,
        float(score.std()),
        _mean_loss(label, loss),
        len(label),
        reason,
    )


def rank_agreement(
    score: np.ndarray[tuple[int], np.dtype[np.float64]], label: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> tuple[float | None, str, str]:
    """AUC for labels of 0 and 1, Spearman's rho (midranks) otherwise; None with the reason where undefined.

    >>> rank_agreement(np.array([0.1, 0.4, 0.9]), np.array([0.0, 0.0, 1.0]))
    (1.0, 'auc', '')
    >>> rank_agreement(np.array([1.0, 1.0]), np.array([0.0, 1.0]))
    (None, 'auc', 'constant predictions')
    """
    statistic = "auc" if set(label.tolist()) <= {0.0, 1.0} else "spearman"
    if len(set(label.tolist())) < 2:
        return None, statistic, "constant labels"
    if float(np.ptp(score)) < 1e-12:
        return None, statistic, "constant predictions"
    if statistic == "spearman":
        return float(stats.spearmanr(score, label).statistic), statistic, ""
    positive = label > 0.5
    ranks = stats.rankdata(score)
    n = int(positive.sum())
    above = float(ranks[positive].sum()) - n * (n + 1) / 2
    return above / (n * (len(label) - n)), statistic, ""


def _mean_loss(label: np.ndarray[tuple[int], np.dtype[np.float64]], loss: str) -> float:
    mean = float(label.mean())
    if loss == "mse":
        return float(label.var())
    if mean in (0.0, 1.0):
        return 0.0
    return float(-(mean * np.log(mean) + (1 - mean) * np.log(1 - mean)))
