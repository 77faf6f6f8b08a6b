"""MAIA-DQE (Mendonca et al., 2023): customer support through machine translation, rated by people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic.dataclasses import dataclass

from mdialeval.errors import ConfigError, DataError, nearest
from mdialeval.languages import canonical
from mdialeval.readers.labels import LabelCheck, Scale, as_scales
from mdialeval.readers.markup import marked_turns
from mdialeval.readers.opening import csv_rows
from mdialeval.readers.protocol import OPTIONS
from mdialeval.records import Example

DIMENSIONS = {
    "understanding": ("understandability", (0.0, 1.0)),
    "sensibleness": ("sensibleness", (0.0, 1.0)),
    "engagement": ("engagement", (0.0, 1.0)),
    "politeness": ("politeness", (0.0, 1.0)),
    "correctness": ("correctness", (0.0, 2.0)),
    "iq": ("interaction_quality", (1.0, 5.0)),
}
"""Column -> dimension and its scale."""
_FILE_LANGUAGE = re.compile(r"([a-z]{2}(?:_[a-z]{2})?)_(?:client|agent)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, config=OPTIONS)
class Maia:
    """Reads ``ctx_src, ctx_tgt, res_src, res_tgt`` and ratings, one example a row.

    About 2 % of the rows are rated bad: report intervals.  A few labels are typing errors; they are listed and left
    unrated.

    Attributes:
        side: ``source`` (the customer's and the agent's own texts as shown to the customer) or ``target`` (English).
        language: of the source side; seen from the file name (``de_client_02_turn.csv``) where None.
        dimensions: the rating columns to read.
        outside: what happens to labels outside their scale.
    """

    side: Literal["source", "target"] = "source"
    language: str | None = None
    dimensions: Sequence[str] = ("understanding", "sensibleness")
    outside: Literal["error", "drop"] = "drop"
    licence = "CC BY-ND 4.0"

    def __post_init__(self) -> None:
        problems = [
            f"dimensions: no {name!r}: {nearest(name, DIMENSIONS)}"
            for name in self.dimensions
            if name not in DIMENSIONS
        ]
        if problems:
            raise ConfigError(problems)
        if self.language is not None:
            canonical(self.language)

    @property
    def scales(self) -> Mapping[str, Scale]:
        """Dimension -> scale of the columns read."""
        return as_scales(dict(DIMENSIONS[name] for name in self.dimensions))

    def read(self, paths: Sequence[Path]) -> Iterator[Example]:
        """Stream the examples; rows that continue the row before belong to the same group.

        Raises:
            DataError: a missing column or an empty text.
        """
        for path in paths:
            language = "en" if self.side == "target" else self._language(path)
            context_column, response_column = (f"{part}_{self.side_suffix}" for part in ("ctx", "res"))
            conversation, before = 0, ""
            with LabelCheck(path, self.scales, self.outside) as labels:
                for number, (line, row) in enumerate(csv_rows(path)):
                    missing = [c for c in (context_column, response_column, *self.dimensions) if c not in row]
                    if missing:
                        raise DataError(f"there is no such column: {nearest(missing[0], row)}", path, 1, missing[0])
                    context, response = marked_turns(row[context_column]), marked_turns(row[response_column])
                    if not context or len(response) != 1:
                        raise DataError("a context and one response are needed", path, line, response_column)
                    # grouped on the source side in either case, so that both sides have the same groups
                    conversation += _said(row["ctx_src"]) != before
                    before = _said(row["res_src"])
                    ratings = labels.values({DIMENSIONS[name][0]: row[name] for name in self.dimensions}, line)
                    group = f"{path.stem}-c{conversation}"
                    yield Example(f"{path.stem}-{number}", language, context, response[0], ratings, group)

    @property
    def side_suffix(self) -> str:
        """``src`` or ``tgt``, as the columns are named."""
        return "src" if self.side == "source" else "tgt"

    def _language(self, path: Path) -> str:
        if self.language is not None:
            return canonical(self.language)
        found = _FILE_LANGUAGE.match(path.name)
        if found is None:
            raise DataError("the file name does not tell the language (de_client_...): set the option language", path)
        return canonical(found[1].replace("_", "-"))


def _said(cell: str) -> str:
    return " ".join(turn.text for turn in marked_turns(cell))
