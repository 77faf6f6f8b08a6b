"""What a corpus reader is, and the table of readers: one corpus format a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from pydantic import ConfigDict

from mdialeval.records import Dialogue, Example

READERS: Mapping[str, str] = {
    "jsonl": "mdialeval.readers.jsonl:JsonLines",
    "csv": "mdialeval.readers.delimited:Csv",
    "tsv": "mdialeval.readers.delimited:Tsv",
    "parquet": "mdialeval.readers.parquet:Parquet",
    "huggingface": "mdialeval.readers.huggingface:HuggingFace",
    "dailydialog": "mdialeval.readers.dailydialog:DailyDialog",
    "dailydialogpp": "mdialeval.readers.dailydialogpp:DailyDialogPlusPlus",
    "xdial": "mdialeval.readers.xdial:XDial",
    "maia": "mdialeval.readers.maia:Maia",
    "dialevalml": "mdialeval.readers.dialevalml:DialEvalML",
    "holistic": "mdialeval.readers.holistic:Holistic",
    "personachat": "mdialeval.readers.personachat:PersonaChat",
    "xpersona": "mdialeval.readers.xpersona:XPersona",
    "topicalchat": "mdialeval.readers.topicalchat:TopicalChat",
    "dstc11": "mdialeval.readers.dstc11:Dstc11",
    "fed": "mdialeval.readers.fed:Fed",
    "usr": "mdialeval.readers.usr:Usr",
    "grade": "mdialeval.readers.grade:Grade",
    "conture": "mdialeval.readers.conture:ConTurE",
}


OPTIONS = ConfigDict(extra="forbid")
"""Readers are pydantic dataclasses: their options come from YAML and are checked against the annotations."""


class Reader(Protocol):
    """Reads one corpus format.  Options are the constructor's keyword arguments.

    A reader may declare ``scales`` (dimension -> lowest, highest) and ``licence``.  One whose ``language`` option
    defaults to a language takes the run's source language; None there means that the files tell.  One with
    ``joint = True`` gets all paths in one call (parallel files), the others one path a call.
    """

    def read(self, paths: Sequence[Path]) -> Iterator[Dialogue | Example]:
        """Stream the items of the files, in file order.

        Raises:
            DataError: names file, row, field and fix.
        """
        ...
