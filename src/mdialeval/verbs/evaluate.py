"""``rank --evaluate``: the configured estimator, or combined signal, against human scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mdialeval.config.rank import COMBINED, RankConfig
from mdialeval.config.run import RunConfig
from mdialeval.languages import pair
from mdialeval.rank.columns import ColumnsBuilder
from mdialeval.rank.combine import combine
from mdialeval.rank.evaluate import QeEvaluation, evaluate_estimator, evaluate_scores
from mdialeval.rank.gold import Gold, read_gold
from mdialeval.verbs.estimate import check_estimators, load_estimator


def evaluate(config: RunConfig, path: str | Path, languages: str = "") -> list[QeEvaluation]:
    """Score the rows of a gold file and compare, one language at a time.

    Args:
        config: the section ``rank`` names the estimator.
        path: an MLQE-PE or WMT-QE file, or the common beginning of ``.src``, ``.mt`` and ``.da`` files.
        languages: such as ``en-de``, where the file's name does not tell.

    Raises:
        ConfigError: the estimator cannot be made, or needs back-translations, which no gold file has.
        DataError: the file is wrong.
    """
    section = config.rank
    check_estimators(section, back=False)
    source, target = pair(languages) if languages else (None, None)
    gold = read_gold(path, target, source)
    if section.estimator == COMBINED:
        return evaluate_scores(_combined(section, gold), gold)
    (part,) = section.members()
    return evaluate_estimator(load_estimator(section, part), gold)


def _combined(section: RankConfig, gold: list[Gold]) -> list[float]:
    """The combined score of every row, from one estimator after the other."""
    rows = [entry.translation for entry in gold]
    builder = ColumnsBuilder(())
    for row in rows:
        builder.add(row, 0.0)
    signals = {}
    for part in section.parts:
        estimator = load_estimator(section, part)
        signals[part.title] = np.array(estimator.estimate(rows)) * (1.0 if estimator.higher_is_better else -1.0)
    found: list[float] = combine(builder.build(), signals, {p.title: p.weight for p in section.parts}).score.tolist()
    return found
