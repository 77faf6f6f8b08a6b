"""DialEvalML (Mendonca et al., SIGDIAL 2023): the multilingual post-edits, and the human scores in their format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from pydantic.dataclasses import dataclass

from mdialeval.errors import DataError
from mdialeval.languages import canonical
from mdialeval.readers.grouping import Groups
from mdialeval.readers.labels import LabelCheck, Scale, as_scales
from mdialeval.readers.markup import marked_turns
from mdialeval.readers.opening import csv_rows
from mdialeval.readers.protocol import OPTIONS
from mdialeval.records import Example, Turn

CONTEXTS, RESPONSES = 50, 5
"""Rows 0 to 49 of the post-edits are contexts; row r from 50 on is a response to context (r - 50) // 5."""
RATERS = {"understandability": "F", "sensibleness": "A", "overall": "EO"}
"""Dimension -> the letter(s) before the rater's number, 1 to 4."""


@dataclass(frozen=True, kw_only=True, config=OPTIONS)
class DialEvalML:
    """Reads ``DD_test_post_edits.csv`` (unrated), or a file with ``ctx, model_response, F1..F4, A1..A4, EO1..EO4``.

    Attributes:
        languages: columns of the post-edits to read; all where empty.
        language: of the scored file.
        scale: dimension -> [lowest, highest] of the scored file; 0 to 1 for understandability and sensibleness, 1 to 5
            for overall where not given.
        outside: what happens to single votes outside their scale.
    """

    languages: Sequence[str] = ()
    language: str = "en"
    scale: Mapping[str, Any] | None = None
    outside: Literal["error", "drop"] = "error"
    licence = "MIT"

    def __post_init__(self) -> None:
        _ = self.scales, [canonical(code) for code in self.languages]

    @property
    def scales(self) -> Mapping[str, Scale]:
        """Dimension -> scale."""
        return as_scales({"understandability": [0, 1], "sensibleness": [0, 1], "overall": [1, 5], **(self.scale or {})})

    def read(self, paths: Sequence[Path]) -> Iterator[Example]:
        """Stream the examples of either kind of file.

        Raises:
            DataError: neither kind of file, another number of rows than 300, an empty cell.
        """
        for path in paths:
            rows = csv_rows(path)
            first = next(rows, None)
            if first is None:
                continue
            if "src" in first[1]:
                yield from self._post_edits(path, chain([first], rows))
            elif "model_response" in first[1] and "ctx" in first[1]:
                yield from self._scored(path, chain([first], rows))
            else:
                raise DataError("expected columns src, pt, ... or ctx, model_response, F1, ...", path, 1)

    def _post_edits(self, path: Path, rows: Iterator[tuple[int, dict[str, str]]]) -> Iterator[Example]:
        contexts: list[dict[str, str]] = []
        columns: dict[str, str] = {}
        number = -1
        for number, (line, row) in enumerate(rows):
            columns = columns or self._columns(path, row)
            empty = next((column for column in columns.values() if not row[column].strip()), None)
            if empty is not None:
                raise DataError("the cell is empty, and it is needed", path, line, empty)
            if number < CONTEXTS:
                contexts.append(row)
                continue
            index, slot = divmod(number - CONTEXTS, RESPONSES)
            if index >= CONTEXTS:
                break
            name, group = f"{path.stem}-{number}", f"{path.stem}-c{index}"
            for code, column in columns.items():
                context = (Turn(contexts[index][column].strip()),)
                source = None if code == "en" else name
                yield Example(name, code, context, Turn(row[column].strip()), {}, group, f"slot{slot}", source)
        expected = CONTEXTS * (RESPONSES + 1)
        if number + 1 != expected:
            raise DataError(f"the post-edits have {expected} rows, this file has another number", path)

    def _columns(self, path: Path, row: Mapping[str, str]) -> dict[str, str]:
        found = {"en" if column == "src" else canonical(column): column for column in row if column}
        wanted = [canonical(code) for code in self.languages] or list(found)
        missing = [code for code in wanted if code not in found]
        if missing:
            raise DataError(f"no column for {', '.join(missing)}; the file has {', '.join(found)}", path, 1)
        return {code: found[code] for code in wanted}

    def _scored(self, path: Path, rows: Iterator[tuple[int, dict[str, str]]]) -> Iterator[Example]:
        language, groups = canonical(self.language), Groups(path.stem)
        with LabelCheck(path, self.scales, self.outside) as labels:
            for number, (line, row) in enumerate(rows):
                context, response = marked_turns(row["ctx"]), marked_turns(row["model_response"])
                if not context or len(response) != 1:
                    raise DataError("a context and one response are needed", path, line, "model_response")
                votes = {d: [row[k] for k in (f"{r}{n}" for n in range(1, 5)) if k in row] for d, r in RATERS.items()}
                ratings = labels.means(votes, line)
                group = groups.of(tuple(turn.text for turn in context))
                yield Example(f"{path.stem}-{number}", language, context, response[0], ratings, group)
