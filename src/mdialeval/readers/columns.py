"""Rows of any table or JSON file into records: which column plays which role.

The native form needs no options: a Dialogue is ``{"id", "language", "turns": [...]}`` with turns as texts or as
``{"text", "speaker"}``, an Example ``{"id", "language", "context": [...], "response", "ratings": {}, "group", "system",
"source_id"}`` (``response`` null where the whole dialogue is rated).  What ``tables.write_records`` writes reads back
as the same records.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from mdialeval.errors import ConfigError, DataError, nearest
from mdialeval.languages import canonical
from mdialeval.readers.grouping import Groups
from mdialeval.readers.labels import LabelCheck, Scale, as_scales, is_missing
from mdialeval.readers.markup import has_markup, marked_turns
from mdialeval.readers.protocol import OPTIONS
from mdialeval.records import Dialogue, Example, Turn

Kind = Literal["dialogue", "example"]
ROLES = ("id", "language", "turns", "context", "response", "ratings", "group", "system", "source_id")


@dataclass(frozen=True, kw_only=True, config=OPTIONS)
class Columns:
    """The options that every generic reader shares.

    Attributes:
        columns: role (``id``, ``language``, ``turns``, ``context``, ``response``, ``group``, ``system``, ``source_id``)
            -> column; a role not named here is looked for under its own name.  ``response: null``: the whole dialogue
            is rated.
        ratings: dimension -> column.
        scale: dimension -> [lowest, highest]; a label outside is an error.
        outside: ``drop`` leaves rows with labels outside the scale unrated and lists them in a warning.
        language: of the rows that do not name one.
        turn_separator: between the turns in a cell of text.
        kind: ``dialogue`` or ``example``; seen from the columns where None.
    """

    columns: Mapping[str, str | None] = Field(default_factory=dict)
    ratings: Mapping[str, str] = Field(default_factory=dict)
    scale: Mapping[str, Any] = Field(default_factory=dict)
    outside: Literal["error", "drop"] = "error"
    language: str = "en"
    turn_separator: str = "\n"
    kind: Kind | None = None

    def __post_init__(self) -> None:
        problems = [f"columns: no role {name!r}: {nearest(name, ROLES)}" for name in self.columns if name not in ROLES]
        if not self.turn_separator:
            problems.append("turn_separator: is empty")
        if problems:
            raise ConfigError(problems)
        canonical(self.language)
        as_scales(self.scale)

    @property
    def scales(self) -> dict[str, Scale]:
        """Dimension -> (lowest, highest), as declared."""
        return as_scales(self.scale)

    def items(
        self, path: Path, rows: Iterable[tuple[int, Mapping[str, Any]]], native: bool = False
    ) -> Iterator[Dialogue | Example]:
        """The records of a file's rows.

        Args:
            path: the file, for messages and for ids where no column holds one.
            rows: (line, column -> value); a value is text, a list of turns, a mapping of ratings or None.
            native: the columns are exactly a record's fields, so that an empty ``group`` is meant so.

        Raises:
            DataError: a column that is not there, an empty cell that is needed, a label outside its scale.
        """
        layout: _Layout | None = None
        with LabelCheck(path, self.scales, self.outside) as labels:
            for number, (line, row) in enumerate(rows, start=1):
                if layout is None:
                    layout = _Layout(self, path, row, line, native)
                yield layout.item(number, line, row, labels)


class _Layout:
    """Where each role is found in one file, and the rows made into records."""

    def __init__(self, options: Columns, path: Path, first: Mapping[str, Any], line: int, native: bool) -> None:
        self.options, self.path, self.native = options, path, native
        self.groups = Groups(path.name.partition(".")[0])
        named = {role: column for role, column in options.columns.items() if column is not None}
        for column in (*named.values(), *options.ratings.values()):
            if column not in first:
                raise DataError(f"there is no such column: {nearest(column, map(str, first))}", path, line, column)
        self.of = {role: role for role in ROLES if role not in options.columns} | named
        self.found = {role for role, column in self.of.items() if column in first}
        self.kind: Kind = options.kind or self._kind(first, line)
        self.whole = options.columns.get("response", "") is None
        if self.kind == "example" and "turns" in self.found and not {"context", "response"} & self.found:
            self.of["context"], self.whole = self.of["turns"], True
            self.found.add("context")
        needed = "turns" if self.kind == "dialogue" else "context" if self.whole else "response"
        if needed not in self.found:
            raise DataError(self._advice(first), path, line, needed)

    def _kind(self, first: Mapping[str, Any], line: int) -> Kind:
        if {"context", "response"} & self.found:
            return "example"
        if "turns" in self.found:
            return "example" if self.options.ratings or "ratings" in self.found else "dialogue"
        raise DataError(self._advice(first), self.path, line)

    def _advice(self, first: Mapping[str, Any]) -> str:
        missing = "'turns' (dialogues) or 'context' and 'response' (rated examples)"
        hint = ": is another separator used?" if len(first) < 2 else ""
        return (
            f"no column {missing}; the columns are {', '.join(map(repr, first))}{hint}; name them in the option "
            "columns, such as {response: reply}; {response: null} where whole dialogues are rated"
        )

    def item(self, number: int, line: int, row: Mapping[str, Any], labels: LabelCheck) -> Dialogue | Example:
        """The record of one row; ``number`` counts rows from 1."""
        if None in row.values() or "" in row.values():
            self._check_missing(line, row)
        name = self._text(line, row, "id") or f"{self.path.name.partition('.')[0]}-{number}"
        language = self._language(line, row)
        source_id = self._text(line, row, "source_id") or None
        if self.kind == "dialogue":
            turns = self._turns(line, row, "turns")
            if not turns:
                raise DataError("the dialogue has zero turns", self.path, line, self.of["turns"])
            return Dialogue(name, language, turns, source_id)
        context = self._turns(line, row, "context") if "context" in self.of else ()
        response = None if self.whole else self._response(line, row)
        if response is None and not context:
            raise DataError("neither a context nor a response: nothing to rate", self.path, line)
        group = self._text(line, row, "group")
        if group is None or (not group and not self.native):
            group = self.groups.of(tuple(turn.text for turn in context))
        system = self._text(line, row, "system") or ""
        return Example(name, language, context, response, self._ratings(line, row, labels), group, system, source_id)

    def _check_missing(self, line: int, row: Mapping[str, Any]) -> None:
        """A cell that is needed, or that the options name, must not be empty."""
        needed = {"turns"} if self.kind == "dialogue" else set() if self.whole else {"response"}
        needed |= {role for role in ("id", "language") if self.options.columns.get(role)}
        for role in needed & self.of.keys():
            value = row.get(self.of[role])
            if role == "response" and value is None and role not in self.options.columns:
                continue  # the native form: null where the whole dialogue is rated; an absent key is seen later
            if is_missing(value):
                raise DataError("the cell is empty, and it is needed", self.path, line, self.of[role])

    def _text(self, line: int, row: Mapping[str, Any], role: str) -> str | None:
        """The text of a role; None where the file has no such column or the value is null."""
        value = row.get(self.of[role]) if role in self.of else None
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, (int, float)):
            return None if is_missing(value) else f"{value:g}" if isinstance(value, float) else str(value)
        raise DataError(f"should be a text, not {type(value).__name__}", self.path, line, self.of[role])

    def _language(self, line: int, row: Mapping[str, Any]) -> str:
        code = self._text(line, row, "language") or self.options.language
        try:
            return canonical(code)
        except ConfigError as error:
            raise DataError(str(error), self.path, line, self.of.get("language")) from None

    def _response(self, line: int, row: Mapping[str, Any]) -> Turn | None:
        column = self.of["response"]
        if column not in row:
            raise DataError("the key is missing: write null where the whole dialogue is rated", self.path, line, column)
        value = row[column]
        if isinstance(value, str) and value.startswith("{"):
            value = _json_or_text(value)
        if is_missing(value):
            return None
        turns = self._list([value], line, column)
        if len(turns) != 1:
            raise DataError(f"a response is one turn, here are {len(turns)}", self.path, line, column)
        return turns[0]

    def _turns(self, line: int, row: Mapping[str, Any], role: str) -> tuple[Turn, ...]:
        column = self.of[role]
        value = row.get(column)
        if isinstance(value, str):
            value = _json_or_text(value)
        if is_missing(value):
            return ()
        if isinstance(value, str):
            return self._split(value)
        if not isinstance(value, (list, tuple)):
            raise DataError(f"should be a list of turns or a text, not {type(value).__name__}", self.path, line, column)
        return self._list(value, line, column)

    def _split(self, text: str) -> tuple[Turn, ...]:
        if has_markup(text) and self.options.turn_separator == "\n":
            return marked_turns(text)
        parts = text.replace("\r\n", "\n").split(self.options.turn_separator)
        return tuple(turn for part in parts if part.strip() for turn in _spoken(part.strip()))

    def _list(self, values: Iterable[Any], line: int, column: str) -> tuple[Turn, ...]:
        turns: list[Turn] = []
        for index, value in enumerate(values):
            if isinstance(value, str) and value:
                turns += _spoken(value)
                continue
            text, speaker = _parts(value)
            if not isinstance(text, str) or not isinstance(speaker, str | None):
                what = "is empty" if is_missing(value) else f"is {str(value)[:60]!r}"
                fix = 'write a text or {"text": ..., "speaker": ...}'
                raise DataError(f"turn {index + 1} {what}: {fix}", self.path, line, column)
            turns.append(Turn(text, speaker))
        return tuple(turns)

    def _ratings(self, line: int, row: Mapping[str, Any], labels: LabelCheck) -> dict[str, float]:
        raw: dict[str, Any] = {dimension: row.get(column) for dimension, column in self.options.ratings.items()}
        given = row.get(self.of["ratings"]) if "ratings" in self.of and not self.options.ratings else None
        if isinstance(given, str):
            given = _json_or_text(given)
        if isinstance(given, Mapping):
            raw |= given
        elif not is_missing(given):
            raise DataError('should be an object such as {"fluency": 4}', self.path, line, self.of["ratings"])
        return labels.values(raw, line)


def _spoken(text: str) -> list[Turn]:
    """One text as a turn, its leading ``<speaker1>`` as the speaker; other text is left exactly as it is."""
    return list(marked_turns(text)) if text.lstrip().lower().startswith("<speaker") else [Turn(text)]


def _parts(value: Any) -> tuple[Any, Any]:
    """Text and speaker of a turn object: ``text``/``speaker``, or the chat form ``content``/``role``."""
    if not isinstance(value, Mapping):
        return None, None
    if "text" in value:
        return value["text"], value.get("speaker")
    return value.get("content"), value.get("role")


def _json_or_text(text: str) -> Any:
    """A cell that holds a JSON list of turns or a JSON object is that value; any other cell is text.

    >>> _json_or_text('["Hi.", "Hello."]'), _json_or_text("[laughs] Hi."), _json_or_text("[1]")
    (['Hi.', 'Hello.'], '[laughs] Hi.', '[1]')
    """
    if text[:1] not in ("[", "{"):
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, list) and not all(isinstance(v, (str, dict)) for v in value):
        return text
    return value
