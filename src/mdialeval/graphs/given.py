"""Graphs that exist already: a PENMAN file, aligned with the texts by ``::snt`` or by ``::id``."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mdialeval.errors import DataError, nearest
from mdialeval.graphs.penman_codec import EMPTY_CONCEPT, PenmanEntry, read_penman
from mdialeval.records import Graph
from mdialeval.registry import Asset
from mdialeval.signature import file_hash

log = logging.getLogger(__name__)


class GivenParser:
    """Looks graphs up in a PENMAN file.

    A text is found by its sentence (white space and Unicode form do not count); of several entries with one sentence
    the first counts.  ``by_id`` looks up ids instead.  A text without an entry gets status ``failed`` and says so.

    Args:
        path: the PENMAN file.

    Raises:
        DataError: the file cannot be read, or an id occurs twice.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        entries = list(read_penman(self.path))
        self.identity = f"given:{file_hash(self.path)}"
        self._by_id: dict[str, PenmanEntry] = {}
        self._by_sentence: dict[str, Graph] = {}
        for entry in entries:
            earlier = self._by_id.get(entry.graph.id)
            if earlier is not None:
                raise DataError(
                    f"the id {entry.graph.id!r} occurs twice (first on line {earlier.line}): ids must be unique",
                    self.path,
                    entry.line,
                    "::id",
                )
            if entry.graph.id:
                self._by_id[entry.graph.id] = entry
            if entry.sentence:
                self._by_sentence.setdefault(_key(entry.sentence), entry.graph)

    @staticmethod
    def assets(path: str | Path = "") -> list[Asset]:
        """The file itself."""
        return [Asset("PENMAN file", "file", Path(path).is_file(), str(path), "give its path as 'path'")]

    def parse(self, texts: Sequence[str]) -> list[Graph]:
        """The graphs of the sentences, in order.

        Raises:
            DataError: the file has no ``::snt`` at all.
        """
        if texts and not self._by_sentence:
            raise DataError("no '# ::snt' in the file: add the sentences, or align by id", self.path, field="::snt")
        return [self._found(text) for text in texts]

    def _found(self, text: str) -> Graph:
        if not text.strip():
            return Graph("", 0, (EMPTY_CONCEPT,), (), status="empty", detail="the text has no content")
        graph = self._by_sentence.get(_key(text))
        if graph is None:
            return Graph("", -1, (), (), status="failed", detail=f"{self.path}: no entry with this ::snt")
        return replace(graph, id="")

    def by_id(self, ids: Sequence[str]) -> list[Graph]:
        """The graphs of some ids, in order; an id that is missing gets status ``failed``.

        Raises:
            DataError: none of the ids is in the file.
        """
        known = [id for id in ids if id in self._by_id]
        if ids and not known:
            raise DataError(
                f"none of the {len(ids)} ids is in the file: asked for {ids[0]!r}; {nearest(ids[0], self._by_id)}",
                self.path,
                field="::id",
            )
        if len(known) < len(ids):
            log.warning("%s: no graph for %d of %d ids", self.path, len(ids) - len(known), len(ids))
        return [
            self._by_id[id].graph
            if id in self._by_id
            else Graph(id, -1, (), (), status="failed", detail=f"{self.path}: no entry with ::id {id}")
            for id in ids
        ]


def _key(sentence: str) -> str:
    return " ".join(unicodedata.normalize("NFC", sentence).split())
