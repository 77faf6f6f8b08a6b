"""``audit``: what two data sets share, exactly or nearly, in any language."""

from __future__ import annotations

from pathlib import Path

from mdialeval.config.corpus import Source
from mdialeval.readers import read
from mdialeval.readers.overlap import OverlapReport, find_overlap


def audit(
    one: Path, other: Path, reader: str = "jsonl", other_reader: str = "", threshold: float = 0.8
) -> OverlapReport:
    """Compare two files of dialogues or examples; see ``readers.overlap.find_overlap``.

    Args:
        one, other: the files.
        reader: of the first, and of the second where ``other_reader`` is empty.
        threshold: least similarity of near duplicates, above 0 and at most 1.
    """
    left = Source.model_validate({"reader": reader, "path": one})
    right = Source.model_validate({"reader": other_reader or reader, "path": other})
    return find_overlap(read(left), read(right), threshold)
