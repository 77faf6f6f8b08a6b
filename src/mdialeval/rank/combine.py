"""Several estimators as one ranking key: weighted means of scores standardised inside each language."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdialeval.errors import ConfigError, DataError
from mdialeval.rank.columns import Columns

log = logging.getLogger(__name__)


def combine(columns: Columns, signals: Mapping[str, ArrayLike], weights: Mapping[str, float]) -> Columns:
    """The same rows with the combined score.

    Every signal becomes z-scores inside each language (population standard deviation, over the rows that are ranked
    and have the signal), and the score is their mean weighted by ``weights``.  A row that lacks one of the signals has
    no score: a mean over the others would be on another scale.

    Args:
        columns: the rows; their own score is replaced.
        signals: name -> (N,) scores, higher is better, NaN where there is none.
        weights: name -> weight, for every signal.  A negative weight turns a signal round.

    Raises:
        ConfigError: a signal without weight, a weight without signal, or all weights zero.
        DataError: a signal of another length.
    """
    wrong = [f"combined estimator: {name!r} has no weight" for name in signals if name not in weights]
    wrong += [
        f"combined estimator: weight for {name!r}, which is not a signal" for name in weights if name not in signals
    ]
    total = sum(abs(weights[name]) for name in signals if name in weights)
    if not wrong and not total:
        wrong = ["combined estimator: all weights are zero"]
    if wrong:
        raise ConfigError(wrong)
    combined = np.zeros(len(columns))
    for name, signal in signals.items():
        values = np.asarray(signal, np.float64)
        if len(values) != len(columns):
            raise DataError(f"signal {name!r} has {len(values)} scores for {len(columns)} rows")
        combined += weights[name] / total * standardise(columns, values, name)
    combined[columns.left_out >= 0] = np.nan
    return dataclasses.replace(columns, score=combined)


def standardise(columns: Columns, values: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """z-scores inside each language; zeros, and said so, where a language's values are all equal."""
    z = np.full(len(values), np.nan)
    for code, language in enumerate(columns.languages):
        rows = np.flatnonzero((columns.language == code) & (columns.left_out < 0) & ~np.isnan(values))
        if not len(rows):
            continue
        if is_constant(values[rows]):
            log.warning("%s: %s gives all %d rows the same score and does not count", language, name, len(rows))
            z[rows] = 0.0
        else:
            z[rows] = (values[rows] - values[rows].mean()) / values[rows].std()
    return z


def is_constant(values: NDArray[np.float64]) -> bool:
    """Whether all values (one or more) are equal up to rounding, so that they have no z-scores."""
    return bool(values.std() <= 1e-12 * max(1.0, abs(float(values.mean()))))


def combined_identity(parts: Sequence[tuple[float, str]]) -> str:
    """The signature of a combined score from the weights and identities of its parts.

    >>> combined_identity([(1.0, "estimator:embedded"), (0.5, "estimator:cosine")])
    'estimator:combined|z-scores:language|1*(estimator:embedded)|0.5*(estimator:cosine)'
    """
    return "|".join(["estimator:combined", "z-scores:language", *(f"{w:g}*({identity})" for w, identity in parts)])
