"""DailyDialog++ (Sai et al., TACL 2020): contexts with several good, adversarial and random responses, JSON Lines."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic.dataclasses import dataclass

from mdialeval.errors import ConfigError, DataError, nearest
from mdialeval.languages import canonical
from mdialeval.readers.grouping import Groups
from mdialeval.readers.labels import Scale
from mdialeval.readers.opening import json_rows
from mdialeval.readers.protocol import OPTIONS
from mdialeval.records import Dialogue, Example, Turn

logger = logging.getLogger(__name__)
KEYS = {
    "positive": "positive_responses",
    "adversarial": "adversarial_negative_responses",
    "random": "random_negative_responses",
}
PLACEHOLDER = "Repeated"
"""What the release holds in place of 25 adversarial responses."""


@dataclass(frozen=True, kw_only=True, config=OPTIONS)
class DailyDialogPlusPlus:
    """Reads DailyDialog++.

    Positive responses are rated sensibleness 1, negative ones 0 (labels by construction: see ``Source.labels``).
    Placeholders and random negatives that equal a positive of the same context are dropped and counted.

    Attributes:
        responses: which kinds; a file without some of them (the positives-only release) gives those it has.
        kind: ``example``, or ``dialogue`` for the context continued by each positive response.
        language: of the text.
    """

    responses: Sequence[str] = ("positive", "adversarial", "random")
    kind: Literal["example", "dialogue"] = "example"
    language: str = "en"
    licence = "none stated"
    scales: ClassVar[Mapping[str, Scale]] = {"sensibleness": (0.0, 1.0)}

    def __post_init__(self) -> None:
        problems = [
            f"responses: no kind {name!r}: {nearest(name, KEYS)}" for name in self.responses if name not in KEYS
        ]
        if not self.responses:
            problems.append("responses: name at least one kind")
        if problems:
            raise ConfigError(problems)

    def read(self, paths: Sequence[Path]) -> Iterator[Dialogue | Example]:
        """Stream the examples: context by context, positives first.

        Raises:
            DataError: a key that is missing, or a value that is not a list of texts.
        """
        language = canonical(self.language)
        for path in paths:
            groups, dropped = Groups(path.stem), {"placeholder": 0, "random equal to a positive": 0}
            for line, row in json_rows(path):
                context = tuple(Turn(text) for text in _texts(row, "context", path, line))
                name = f"{path.stem}-{row.get('id', row.get('dialog_id', line))}"
                group = groups.of(tuple(turn.text for turn in context))
                for kind, number, response in self._responses(row, path, line, dropped):
                    name_of = f"{name}-{kind}-{number}"
                    if self.kind == "dialogue":
                        yield Dialogue(name_of, language, (*context, Turn(response)))
                    else:
                        rating = {"sensibleness": 1.0 if kind == "positive" else 0.0}
                        yield Example(name_of, language, context, Turn(response), rating, group, kind)
            if any(dropped.values()):
                logger.warning("%s: dropped %s", path, ", ".join(f"{n} {why}" for why, n in dropped.items()))

    def _responses(
        self, row: Mapping[str, Any], path: Path, line: int, dropped: dict[str, int]
    ) -> Iterator[tuple[str, int, str]]:
        positives = {_plain(text) for text in _texts(row, KEYS["positive"], path, line)}
        for kind in ("positive",) if self.kind == "dialogue" else self.responses:
            if KEYS[kind] not in row:
                continue
            for number, text in enumerate(_texts(row, KEYS[kind], path, line)):
                if text == PLACEHOLDER:
                    dropped["placeholder"] += 1
                elif kind == "random" and _plain(text) in positives:
                    dropped["random equal to a positive"] += 1
                else:
                    yield kind, number, text


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def _texts(row: Mapping[str, Any], key: str, path: Path, line: int) -> list[str]:
    value = row.get(key)
    if not isinstance(value, list) or not value or not all(isinstance(v, str) and v for v in value):
        raise DataError("should be a list of texts, none of them empty", path, line, key)
    return value
