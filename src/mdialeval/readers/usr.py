"""USR (Mehri and Eskenazi, ACL 2020): responses in PersonaChat and Topical-Chat, rated on six dimensions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic.dataclasses import dataclass

from mdialeval.errors import DataError
from mdialeval.languages import canonical
from mdialeval.readers.labels import LabelCheck, Scale, dimension_of
from mdialeval.readers.opening import json_rows
from mdialeval.readers.protocol import OPTIONS
from mdialeval.records import Example, Turn

DIMENSIONS = ("Understandable", "Natural", "Maintains Context", "Engaging", "Uses Knowledge", "Overall")


@dataclass(frozen=True, kw_only=True, config=OPTIONS)
class Usr:
    """Reads ``pc_usr_data.json`` (60 contexts, 300 responses) and ``tc_usr_data.json`` (60, 360).

    A rating is the mean of three votes.  The facts and personas that a response may use are not part of the context.
    """

    language: str = "en"
    outside: Literal["error", "drop"] = "error"
    licence = "none stated"
    scales: ClassVar[Mapping[str, Scale]] = {
        "understandability": (0.0, 1.0),
        "natural": (1.0, 3.0),
        "maintains_context": (1.0, 3.0),
        "engaging": (1.0, 3.0),
        "uses_knowledge": (0.0, 1.0),
        "overall": (1.0, 5.0),
    }

    def read(self, paths: Sequence[Path]) -> Iterator[Example]:
        """Stream the examples; ``system`` is the model, or ``Original Ground Truth`` and ``New Human Generated``.

        Raises:
            DataError: a missing text, or a vote outside its scale.
        """
        language = canonical(self.language)
        for path in paths:
            with LabelCheck(path, self.scales, self.outside) as labels:
                for number, (line, row) in enumerate(json_rows(path)):
                    context = tuple(Turn(t.strip()) for t in str(row.get("context", "")).split("\n") if t.strip())
                    responses = row.get("responses")
                    if not context or not isinstance(responses, list):
                        raise DataError("a context and a list of responses are needed", path, line, "responses")
                    for index, given in enumerate(responses):
                        response = _response(given, path, line)
                        votes = {dimension_of(name): given[name] for name in DIMENSIONS if name in given}
                        yield Example(
                            f"{path.stem}-{number}-{index}",
                            language,
                            context,
                            response,
                            labels.means(votes, line),
                            f"{path.stem}-c{number}",
                            str(given.get("model", "")),
                        )


def _response(given: Any, path: Path, line: int) -> Turn:
    text = given.get("response") if isinstance(given, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise DataError("should be a text that is not empty", path, line, "response")
    return Turn(text.strip())
