"""DSTC11 track 4 (Rodriguez-Cantelar et al., 2023): translated dialogues as CSV, rated responses as JSON."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from mdialeval.errors import DataError
from mdialeval.languages import canonical
from mdialeval.readers.grouping import Groups
from mdialeval.readers.labels import LabelCheck, Scale, annotations_of, as_scales
from mdialeval.readers.opening import csv_rows, json_rows
from mdialeval.readers.protocol import OPTIONS
from mdialeval.records import Dialogue, Example, Turn

logger = logging.getLogger(__name__)
COLUMNS = {"source": "SEG", "translation": "TRANSLATION", "backtranslation": "BACKTRANSLATION"}
_PAIR = re.compile(r"(?:^|_)([a-z]{2})_([a-z]{2})(?:_|$)")
_UID = re.compile(r"(.+)-([^-]+)")
PARAPHRASE = "pa"
"""Suffix of the English paraphrases, which are no language."""


@dataclass(frozen=True, kw_only=True, config=OPTIONS)
class Dstc11:
    """Reads CSV with ``UID, SID, SEG`` (dialogues), and JSON with ``context, response, annotations`` (examples).

    Attributes:
        side: CSV: ``source``, ``translation`` or ``backtranslation``.
        languages: JSON: English and the translations ``context_zh``, ``context_es``; all that are there where empty.
        language: CSV: of the side; seen from the file's or folder's name (``en_zh``) where None.
        scale: JSON: dimension -> [lowest, highest]; the corpora inside have different scales, so none is assumed.
    """

    side: Literal["source", "translation", "backtranslation"] = "source"
    languages: Sequence[str] = ()
    language: str | None = None
    scale: Mapping[str, Any] = Field(default_factory=dict)
    outside: Literal["error", "drop"] = "error"
    licence = "Apache-2.0; the corpora inside: their own"

    def __post_init__(self) -> None:
        _ = self.scales, [canonical(code) for code in self.languages]

    @property
    def scales(self) -> Mapping[str, Scale]:
        """Dimension -> scale, as declared."""
        return as_scales(self.scale)

    def read(self, paths: Sequence[Path]) -> Iterator[Dialogue | Example]:
        """Stream the dialogues of CSV files and the examples of JSON files.

        Raises:
            DataError: a missing column, a UID of another form, a vote outside its scale.
        """
        for path in paths:
            yield from self._rated(path) if path.suffix == ".json" else self._dialogues(path)

    def _dialogues(self, path: Path) -> Iterator[Dialogue]:
        language, column = "", COLUMNS[self.side]
        name, turns, blank = "", list[Turn](), 0
        for line, row in csv_rows(path):
            if not {"UID", column} <= row.keys():
                raise DataError(f"expected the columns UID and {column}", path, 1, column)
            match = _UID.fullmatch(row["UID"])
            if match is None:
                raise DataError("a UID is corpus-dialogue-turn", path, line, "UID")
            language = language or self._language(path)
            if match[1] != name:
                if turns:
                    yield self._dialogue(name, language, turns)
                name, turns = match[1], []
            if row[column].strip():
                turns.append(Turn(row[column].strip(), row.get("SID") or None))
            else:
                blank += 1
        if turns:
            yield self._dialogue(name, language, turns)
        if blank:
            logger.warning("%s: %d blank turns left out", path, blank)

    def _dialogue(self, name: str, language: str, turns: list[Turn]) -> Dialogue:
        return Dialogue(name, language, tuple(turns), name if self.side == "translation" else None)

    def _language(self, path: Path) -> str:
        if self.language is not None:
            return canonical(self.language)
        pair = next((m for name in (path.stem, path.parent.name) if (m := _PAIR.search(name))), None)
        if pair is None:
            raise DataError("neither file nor folder tells the languages (en_zh): set the option language", path)
        return canonical(pair[2] if self.side == "translation" else pair[1])

    def _rated(self, path: Path) -> Iterator[Example]:
        groups, suffixes = Groups(path.stem), dict[str, str]()
        with LabelCheck(path, self.scales, self.outside) as labels:
            for number, (line, row) in enumerate(json_rows(path)):
                suffixes = suffixes or self._suffixes(row, path)
                ratings = labels.means(annotations_of(row, path, line), line)
                group = groups.of(str(row.get("context")))
                for code, suffix in suffixes.items():
                    context, response = (str(row.get(f"{part}{suffix}") or "") for part in ("context", "response"))
                    turns = tuple(Turn(text.strip()) for text in context.split("\n") if text.strip())
                    if not turns and not response.strip():
                        raise DataError("neither a context nor a response", path, line, f"context{suffix}")
                    name = f"{path.stem}-{number}"
                    source = None if code == "en" else name
                    system = str(row.get("model") or "")
                    yield Example(name, code, turns, Turn(response.strip()), ratings, group, system, source)

    def _suffixes(self, row: Mapping[str, Any], path: Path) -> dict[str, str]:
        """Language code -> what is appended to ``context`` and ``response``."""
        if "context" not in row or "response" not in row:
            raise DataError("expected the keys context, response and annotations", path, 1)
        endings = [key.removeprefix("context_") for key in row if key.startswith("context_")]
        found = {"en": "", **{canonical(code): f"_{code}" for code in endings if code != PARAPHRASE}}
        wanted = [canonical(code) for code in self.languages] or list(found)
        missing = [code for code in wanted if code not in found]
        if missing:
            raise DataError(f"no texts in {', '.join(missing)}; the file has {', '.join(found)}", path, 1)
        return {code: found[code] for code in wanted}
