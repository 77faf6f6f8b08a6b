"""xDial-Eval (Zhang et al., Findings of EMNLP 2023), turn level: a pair of columns a language, one rating."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic.dataclasses import dataclass

from mdialeval.errors import DataError
from mdialeval.languages import canonical
from mdialeval.readers.grouping import Groups
from mdialeval.readers.labels import LabelCheck, Scale, as_scales
from mdialeval.readers.opening import csv_rows
from mdialeval.readers.protocol import OPTIONS
from mdialeval.readers.releases import release_of
from mdialeval.records import Example, Turn


@dataclass(frozen=True, kw_only=True, config=OPTIONS)
class XDial:
    """Reads ``<language>_ctx``, ``<language>_res`` and ``ratings``: one example a row and language.

    The English text is the original; the others are its machine translations and carry its rating.

    Attributes:
        languages: which ones, in any spelling; all of the file where empty.
        dimension: what the one averaged human rating is called.
        scale: [lowest, highest] of the rating; 1 to 5 where None, and 1 to 3 in persona-usr.
    """

    languages: Sequence[str] = ()
    dimension: str = "overall"
    scale: Sequence[float] | None = None
    outside: Literal["error", "drop"] = "error"
    licence = "GPL-3.0"

    @property
    def scales(self) -> Mapping[str, Scale]:
        """The rating's scale where the file is not one with its own."""
        return as_scales({self.dimension: list(self.scale or (1, 5))})

    def __post_init__(self) -> None:
        _ = self.scales, [canonical(code) for code in self.languages]

    def read(self, paths: Sequence[Path]) -> Iterator[Example]:
        """Stream the examples, row by row and in a row by language.

        Raises:
            DataError: a column that is missing, an empty cell, a rating outside the scale.
        """
        for path in paths:
            release = release_of(path)
            own = release.scale if release and release.scale and self.scale is None else None
            scales = {self.dimension: own} if own else self.scales
            columns: dict[str, str] = {}
            groups = Groups(path.stem)
            with LabelCheck(path, scales, self.outside) as labels:
                for number, (line, row) in enumerate(csv_rows(path)):
                    columns = columns or self._columns(path, row)
                    rating = labels.values({self.dimension: row["ratings"]}, line)
                    group = groups.of(row.get("english_ctx", row[f"{next(iter(columns.values()))}_ctx"]))
                    for code, name in columns.items():
                        yield _example(path, line, row, f"{path.stem}-{number}", code, name, rating, group)

    def _columns(self, path: Path, row: Mapping[str, str]) -> dict[str, str]:
        """Language code -> the language's name in the columns."""
        names = [column.removesuffix("_ctx") for column in row if column.endswith("_ctx")]
        found = {canonical(name): name for name in names if f"{name}_res" in row}
        if not found or "ratings" not in row:
            raise DataError("expected columns english_ctx, english_res, ..., ratings", path, 1)
        wanted = [canonical(code) for code in self.languages] or list(found)
        missing = [code for code in wanted if code not in found]
        if missing:
            raise DataError(f"no columns for {', '.join(missing)}; the file has {', '.join(found)}", path, 1)
        return {code: found[code] for code in wanted}


def _example(
    path: Path,
    line: int,
    row: Mapping[str, str],
    name: str,
    code: str,
    column: str,
    rating: dict[str, float],
    group: str,
) -> Example:
    context = tuple(Turn(text.strip()) for text in row[f"{column}_ctx"].split("\n") if text.strip())
    response = row[f"{column}_res"].strip()
    if not context or not response:
        field = f"{column}_{'res' if context else 'ctx'}"
        raise DataError("the cell is empty, and it is needed", path, line, field)
    return Example(name, code, context, Turn(response), rating, group, "", None if code == "en" else name)
