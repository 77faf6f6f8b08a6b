"""FED (Mehri and Eskenazi, SIGDIAL 2020): chats with Meena, Mitsuku and people, rated by turn and by dialogue."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from mdialeval.errors import DataError
from mdialeval.languages import canonical
from mdialeval.readers.grouping import Groups
from mdialeval.readers.labels import LabelCheck, Scale, annotations_of, as_scales
from mdialeval.readers.markup import labelled_turn
from mdialeval.readers.opening import json_rows
from mdialeval.readers.protocol import OPTIONS
from mdialeval.records import Example

logger = logging.getLogger(__name__)
SPEAKERS = ("User", "System")
_THREE = (
    "interesting engaging specific relevant correct semantically_appropriate fluent coherent error_recovery diverse "
    "depth likeable understanding flexible informative inquisitive"
)
SCALES = {**dict.fromkeys(_THREE.split(), (0, 2)), "understandability": (0, 1), "consistent": (0, 1), "overall": (0, 4)}


@dataclass(frozen=True, kw_only=True, config=OPTIONS)
class Fed:
    """Reads ``fed_data.json``: 375 rated turns and 125 rated dialogues; a rating is the mean of the votes.

    Votes that are words (not applicable) are left out and counted.

    Attributes:
        level: ``turn`` (rated responses), or ``dialogue`` (rated wholes, without a response).
        scale: dimension -> [lowest, highest], where it differs from the published one.
    """

    level: Literal["turn", "dialogue"] = "turn"
    language: str = "en"
    scale: Mapping[str, Any] = Field(default_factory=dict)
    outside: Literal["error", "drop"] = "error"
    licence = "none stated"

    def __post_init__(self) -> None:
        as_scales(self.scale)

    @property
    def scales(self) -> Mapping[str, Scale]:
        """Dimension -> scale."""
        return as_scales({**SCALES, **self.scale})

    def read(self, paths: Sequence[Path]) -> Iterator[Example]:
        """Stream the examples of one level.  Dialogues that open with the same two turns form one group: cautious.

        Raises:
            DataError: a missing text, or a vote outside its scale.
        """
        language = canonical(self.language)
        for path in paths:
            groups, words = Groups(path.stem), 0
            with LabelCheck(path, self.scales, self.outside) as labels:
                for number, (line, row) in enumerate(json_rows(path)):
                    context = row.get("context")
                    if not isinstance(context, str) or not context.strip():
                        raise DataError("should be a text", path, line, "context")
                    turns = tuple(labelled_turn(text, SPEAKERS) for text in context.split("\n") if text.strip())
                    group = groups.of((row.get("system"), *(turn.text for turn in turns[:2])))
                    said = row.get("response")
                    if (said is None) == (self.level == "turn"):
                        continue
                    votes = annotations_of(row, path, line)
                    numbers = {name: [v for v in given if not isinstance(v, str)] for name, given in votes.items()}
                    words += sum(map(len, votes.values())) - sum(map(len, numbers.values()))
                    response = labelled_turn(str(said), SPEAKERS) if self.level == "turn" else None
                    ratings, system = labels.means(numbers, line), str(row.get("system") or "")
                    yield Example(f"{path.stem}-{number}", language, turns, response, ratings, group, system)
            if words:
                logger.info("%s: %d votes are words, not numbers, and were left out", path, words)
