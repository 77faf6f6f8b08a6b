"""Graphs where evaluators need them: parse stages of every set that has English text, found by turn id or by text.

Graphs stand on the English side alone; a translation takes those of its English turn.  While learning they are found
by language and text, since a task draws responses from anywhere and may shorten contexts; while scoring, by turn id.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from mdialeval.config.run import RunConfig
from mdialeval.graphs.turns import PairGraphs
from mdialeval.pipeline import Progress
from mdialeval.records import Dialogue, Example, Graph, RankedTranslation, TrainingPair, turn_id, turns_of
from mdialeval.store import Run, Stage
from mdialeval.verbs.parse import PIVOT, parse, parse_more
from mdialeval.verbs.read import items_of

log = logging.getLogger(__name__)


def parsed(config: RunConfig, run: Run, stage: Stage, progress: Progress) -> Stage | None:
    """The graphs of a ``read`` stage; None where it holds no English text, which is said."""
    if PIVOT in stage.summary()["languages"]:
        return parse(config, run, stage, progress)
    log.warning(
        "%s holds no English text, so its rows have no graphs; add its English side to have them",
        stage.folder,
    )
    return None


class TrainingGraphs:
    """Graphs of what an evaluator learns from.

    Args:
        config: its section ``parse`` says how texts that no stage holds (perturbed responses) are parsed.
        run: where the parser's cache lies.
        sets: each ``read`` stage with its ``parse`` stage.
        ranked: translations of the first set's turns, or None.
    """

    def __init__(
        self, config: RunConfig, run: Run, sets: Sequence[tuple[Stage, Stage | None]], ranked: Stage | None
    ) -> None:
        self._config, self._run = config, run
        self._by_text: dict[tuple[str, str], Graph] = {}
        self._by_id: dict[str, Graph] = {}
        self._responses: dict[str, Graph] = {}  # by the id of the example
        for read, graphs in sets:
            found = {graph.id: graph for graph in graphs.read(Graph)} if graphs else {}
            self._by_id |= found
            self._add(items_of(read), found)
        for row in ranked.read(RankedTranslation) if ranked else ():
            made = row.translation
            if (graph := self._by_id.get(made.id)) is not None:
                self._by_text.setdefault((made.language, made.hypothesis), graph)

    def _add(self, items: Iterable[Dialogue | Example], graphs: Mapping[str, Graph]) -> None:
        for item in items:
            base = item.source_id or item.id
            if isinstance(item, Example) and (last := graphs.get(turn_id(base, len(item.context)))) is not None:
                self._responses[base] = last
            for index, turn in enumerate(turns_of(item)):
                if (graph := graphs.get(turn_id(base, index))) is not None:
                    self._by_text.setdefault((item.language, turn.text), graph)

    def of_pairs(self, pairs: Sequence[TrainingPair]) -> dict[tuple[str, str], PairGraphs]:
        """(pair id, language) -> the graphs of its turns.

        A perturbed English response is parsed as it stands; that of a translation keeps the graph of its English turn
        where the pair names it, and has none otherwise.
        """
        english = {t.text for p in pairs if p.language == PIVOT for t in (*p.context, p.response)}
        missing = sorted(text for text in english if (PIVOT, text) not in self._by_text)
        fresh = parse_more(self._config, self._run, missing)
        self._by_text |= {(PIVOT, text): graph for text, graph in zip(missing, fresh, strict=True)}
        return {(pair.id, pair.language): self._of(pair) for pair in pairs}

    def _of(self, pair: TrainingPair) -> PairGraphs:
        context = tuple(self._by_text.get((pair.language, turn.text)) for turn in pair.context)
        response = self._by_text.get((pair.language, pair.response.text))
        if response is None and pair.source_id is not None:
            response = self._by_id.get(pair.source_id) or self._responses.get(pair.source_id)
        return PairGraphs(context, response)
