"""What a graph parser is, and the table of parsers: one parser a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from mdialeval.records import Graph

PARSERS: Mapping[str, str] = {
    "dependency": "mdialeval.graphs.dependency:DependencyParser",
    "amrlib": "mdialeval.graphs.amrlib:AmrlibParser",
    "given": "mdialeval.graphs.given:GivenParser",
    "dummy": "mdialeval.graphs.dummy:DummyParser",
}


class GraphParser(Protocol):
    """Parses English turns into AMR.  Same length, same order, no state between calls.

    Attributes:
        identity: parser, model and version: part of every cache key and signature.
    """

    identity: str

    def parse(self, texts: Sequence[str]) -> list[Graph]:
        """One graph a text (``id`` left empty), with a status; a bad text never harms the others."""
        ...
