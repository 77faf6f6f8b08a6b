"""Holistic evaluation (Pang et al., ACL 2020): responses rated for fluency, or with a context for coherence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from pydantic.dataclasses import dataclass

from mdialeval.errors import DataError
from mdialeval.languages import canonical
from mdialeval.readers.grouping import Groups
from mdialeval.readers.labels import LabelCheck, Scale
from mdialeval.readers.opening import counted, csv_cells
from mdialeval.readers.protocol import OPTIONS
from mdialeval.records import Example, Turn

RATERS = 10


@dataclass(frozen=True, kw_only=True, config=OPTIONS)
class Holistic:
    """Reads the headerless files: id, (context,) response, ten ratings; the rating is their mean.

    Twelve fields are rated for ``fluency``, thirteen for ``coherence``.
    """

    language: str = "en"
    outside: Literal["error", "drop"] = "error"
    licence = "none stated"
    scales: ClassVar[Mapping[str, Scale]] = {"fluency": (1.0, 5.0), "coherence": (1.0, 5.0)}

    def read(self, paths: Sequence[Path]) -> Iterator[Example]:
        """Stream the examples.

        Raises:
            DataError: another number of fields, an empty text, a rating outside 1 to 5.
        """
        language = canonical(self.language)
        for path in paths:
            groups, width = Groups(path.stem), 0
            with LabelCheck(path, self.scales, self.outside) as labels:
                for line, cells in counted(path, csv_cells(path)):
                    width = width or len(cells)
                    if width not in (RATERS + 2, RATERS + 3) or len(cells) != width:
                        raise DataError(
                            f"{len(cells)} fields; expected id, (context,) response, ten ratings", path, line
                        )
                    name, *texts = cells[:-RATERS]
                    if not all(text.strip() for text in texts):
                        raise DataError("a text is empty, and it is needed", path, line)
                    *context, response = (Turn(text.strip()) for text in texts)
                    dimension = "coherence" if context else "fluency"
                    ratings = labels.means({dimension: cells[-RATERS:]}, line)
                    group = groups.of(texts[0].strip())
                    yield Example(f"{path.stem}-{name}", language, tuple(context), response, ratings, group)
