"""Semantic faithfulness of the back-translation to the source: needs `translate.back: true` and an English source."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from mdialeval.cache import Cache
from mdialeval.errors import ConfigError, nearest
from mdialeval.graphs.faithfulness import MEASURES, Measure, compare
from mdialeval.graphs.parsing import parse_texts
from mdialeval.graphs.protocol import PARSERS, GraphParser
from mdialeval.rank.lengths import estimable
from mdialeval.records import Graph, Translation
from mdialeval.registry import Asset, assets, create
from mdialeval.signature import signature_line, version

log = logging.getLogger(__name__)

_USABLE = ("ok", "truncated")


class BackTranslationGraph:
    """F1 of the back-translation's semantic graph against the source's, in [0, 1], higher is better.

    It sees swapped roles, lost negation and lost participants where overlap of letters (``chrf_back``) does not, and
    like it measures both directions of translation at once: a complement to an estimator.

    Args:
        measure: ``usim`` (Choshen and Abend 2018, over AMR), ``smatch`` or ``triples``; see ``graphs.faithfulness``.
        parser: an entry of the table of graph parsers.
        parser_options: the parser's own options.
        cache: the SQLite file that remembers parses between calls; without one, distinct texts are parsed once a call.

    Raises:
        ConfigError: an unknown measure or parser.
    """

    higher_is_better = True
    needs_back = True

    def __init__(
        self,
        measure: str = "usim",
        *,
        parser: str = "dependency",
        parser_options: Mapping[str, Any] | None = None,
        cache: str | Path | None = None,
    ) -> None:
        if measure not in MEASURES:
            raise ConfigError(f"graph_back: unknown measure {measure!r}; {nearest(measure, MEASURES)}")
        self._measure: Measure = measure
        self._parser: GraphParser = create("graph parser", PARSERS, parser, parser_options)
        self._cache = None if cache is None else Path(cache)
        parts = {"estimator": "graph_back", "measure": measure, "parser": self._parser.identity}
        self.identity = signature_line(parts | {"scipy": version("scipy")})

    @staticmethod
    def assets(parser: str = "dependency", parser_options: Mapping[str, Any] | None = None, **_: object) -> list[Asset]:
        """What the parser needs."""
        return assets("graph parser", PARSERS, parser, parser_options)

    def estimate(self, pairs: Sequence[Translation]) -> list[float]:
        """One F1 a pair; NaN where ``gaps`` says why."""
        found = self._found(pairs)
        if missing := Counter(reason for reason in found if isinstance(reason, str)):
            counts = ", ".join(f"{n} {reason}" for reason, n in sorted(missing.items()))
            hint = "; set translate.back: true" if missing["no back-translation"] == len(pairs) else ""
            log.warning("graph_back: no score for %d of %d rows: %s%s", missing.total(), len(pairs), counts, hint)
        return [math.nan if isinstance(value, str) else value for value in found]

    def gaps(self, pairs: Sequence[Translation]) -> list[str]:
        """Why each pair has no score: no back-translation, a source that is not English, or a graph that is missing."""
        return [found if isinstance(found, str) else "" for found in self._found(pairs)]

    def _found(self, pairs: Sequence[Translation]) -> list[float | str]:
        """The score of each pair, or why it has none."""
        problems = [_problem(row) for row in pairs]
        usable = [row for row, problem in zip(pairs, problems, strict=True) if not problem]
        graphs = self._graphs([text for row in usable for text in (row.source, row.back or "")])
        scores: dict[tuple[str, str], float | str] = {}
        for i, row in enumerate(usable):
            key = (row.source, row.back or "")
            if key not in scores:
                scores[key] = self._score(graphs[2 * i], graphs[2 * i + 1])
        return [problem or scores[row.source, row.back or ""] for row, problem in zip(pairs, problems, strict=True)]

    def _graphs(self, texts: Sequence[str]) -> list[Graph]:
        if not texts:
            return []
        with Cache(self._cache, self._parser.identity) if self._cache else nullcontext() as cache:
            return parse_texts(self._parser, texts, cache)

    def _score(self, source: Graph, back: Graph) -> float | str:
        for side, graph in (("source", source), ("back-translation", back)):
            if graph.status not in _USABLE:  # USim calls two empty texts equal: nothing to rank by
                return f"graph of the {side}: {graph.status}"
        found = compare(source, back, self._measure)
        return f"{self._measure}: {found.status}" if found.f1 is None else found.f1


def _problem(row: Translation) -> str:
    """Why a pair has nothing to compare; empty where it has."""
    if not estimable(row):
        return "no translation"
    if not (row.back and row.back.strip()):
        return "no back-translation"
    if row.source_language.partition("-")[0] != "en":
        return "the source is not English"
    return ""
