"""Agreement of the back-translation with the source: needs `translate.back: true`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sacrebleu.metrics.chrf import CHRF

from mdialeval.rank.lengths import estimable
from mdialeval.records import Translation
from mdialeval.registry import Asset, package_asset
from mdialeval.signature import version


class BackTranslationChrf:
    """Sentence chrF (Popović 2015) of the back-translation against the source, in [0, 100], higher is better.

    It measures both directions of translation at once and rewards copying, so it belongs beside an estimator.

    Args:
        word_order: 0 for chrF, 2 for chrF++.
    """

    higher_is_better = True
    needs_back = True

    def __init__(self, *, word_order: int = 0) -> None:
        self._chrf = CHRF(word_order=word_order)
        self.identity = f"estimator:chrf_back|word_order:{word_order}|sacrebleu:{version('sacrebleu')}"

    @staticmethod
    def assets(**_: object) -> list[Asset]:
        """sacreBLEU."""
        return [package_asset("sacrebleu")]

    def estimate(self, pairs: Sequence[Translation]) -> list[float]:
        """One chrF a pair; NaN where there is no back-translation."""
        return [
            self._chrf.sentence_score(row.back, [row.source]).score
            if estimable(row) and row.back and row.back.strip()
            else math.nan
            for row in pairs
        ]
