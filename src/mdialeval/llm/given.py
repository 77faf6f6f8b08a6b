"""Replies that exist already, from a file: a reply log of this program, or one of another program, joined by id."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mdialeval.errors import ConfigError, DataError, nearest
from mdialeval.languages import canonical
from mdialeval.llm.protocol import Completion, Finish, Prompt
from mdialeval.readers.opening import csv_rows, json_rows, tsv_rows
from mdialeval.registry import Asset
from mdialeval.signature import file_hash

Key = tuple[str, str, str, int]
_READ = {".jsonl": json_rows, ".json": json_rows, ".csv": csv_rows, ".tsv": tsv_rows}


class GivenReplies:
    """Looks replies up by example, language, criterion and sample.

    The file has the columns ``example_id`` and ``text`` and, where the file holds several, ``language``, ``criterion``,
    ``sample`` (0 where absent) and ``probabilities`` (an object of score token to probability; JSON only).  Of several
    lines about one request, as a log has after a resumed run, the last counts; a line without a text is a failure.

    Args:
        path: ``.jsonl``, ``.json``, ``.csv`` or ``.tsv``.

    Raises:
        ConfigError: no such file, or an unknown ending.
        DataError: a missing column, or a cell that cannot be read; names the line.
    """

    joined = True

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path).expanduser()
        if not self._path.is_file():
            raise ConfigError(f"chat back end 'given': no file {self._path} (working folder: {Path.cwd()})")
        if self._path.suffix not in _READ:
            raise ConfigError(
                f"chat back end 'given': {self._path.name} ends in none of {', '.join(_READ)}", self._path
            )
        self.identity = f"backend:given|file:{file_hash(self._path)}"
        self._replies: dict[Key, Completion] | None = None

    @staticmethod
    def assets(path: str | Path = "", **_: Any) -> list[Asset]:
        """The file."""
        there = Path(path).expanduser().is_file()
        return [Asset("replies", "file", there, str(path), "" if there else "put the file there or change the path")]

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """One completion a prompt; a prompt that the file has no line for is a failure."""
        if self._replies is None:
            self._replies = self._read()
        return [self._one(prompt, self._replies) for prompt in prompts]

    def _one(self, prompt: Prompt, replies: dict[Key, Completion]) -> Completion:
        if prompt.ask is None:
            return Completion(None, error="the prompt names no example", finish="failed")
        language, criterion = prompt.ask.language, prompt.ask.criterion
        for key in ((language, criterion), (language, ""), ("", criterion), ("", "")):
            if found := replies.get((prompt.ask.example_id, *key, prompt.sample)):
                if prompt.probabilities and found.text is not None and found.probabilities is None:
                    return Completion(found.text, error="the file has no probabilities", finish="no_probabilities")
                return found
        problem = f"{self._path.name} has no reply for {prompt.ask.example_id} ({language}, {criterion})"
        return Completion(None, error=problem, finish="failed")

    def _read(self) -> dict[Key, Completion]:
        replies: dict[Key, Completion] = {}
        for line, row in _READ[self._path.suffix](self._path):
            for column in ("example_id", "text"):
                if column not in row:
                    raise DataError(f"no column {column!r}: {nearest(column, row)}", self._path, line)
            language = canonical(str(row["language"])) if row.get("language") else ""
            try:
                sample = int(row.get("sample") or 0)
            except ValueError:
                raise DataError(f"{row['sample']!r} is not a number", self._path, line, "sample") from None
            key = (str(row["example_id"]), language, str(row.get("criterion") or ""), sample)
            replies[key] = self._completion(row, line)
        return replies

    def _completion(self, row: dict[str, Any], line: int) -> Completion:
        text = row["text"]
        if text is None:
            return Completion(None, error=str(row.get("error") or "no reply in the file"), finish="failed")
        probabilities = row.get("probabilities") or None
        if probabilities is not None and not isinstance(probabilities, dict):
            raise DataError('write an object such as {"4": 0.7, "5": 0.3}', self._path, line, "probabilities")
        finish: Finish = "refusal" if row.get("finish") == "refusal" else "stop"
        counts = (int(row.get("prompt_tokens") or 0), int(row.get("completion_tokens") or 0))
        return Completion(str(text), probabilities, "", *counts, finish)
