"""DailyDialog (Li et al., IJCNLP 2017): one dialogue a line, turns ended by ``__eou__``; or parallel pairs of lines."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from pydantic.dataclasses import dataclass

from mdialeval.errors import ConfigError, DataError
from mdialeval.languages import canonical
from mdialeval.readers.markup import marked_turns
from mdialeval.readers.opening import plain_lines
from mdialeval.readers.protocol import OPTIONS
from mdialeval.records import Dialogue, Example, Turn

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, config=OPTIONS)
class DailyDialog:
    """Reads DailyDialog text.

    Attributes:
        language: of the text.
        form: ``eou`` where a line is a dialogue; ``parallel`` where the files come in pairs, line i of the first
            holding the context and line i of the second the response.
        kind: of parallel files: ``dialogue`` joins lines whose context is the response before them; ``example`` makes
            one unrated example a line, grouped by such a dialogue.
    """

    language: str = "en"
    form: Literal["eou", "parallel"] = "eou"
    kind: Literal["dialogue", "example"] = "dialogue"
    licence = "CC BY-NC-SA 4.0"

    def __post_init__(self) -> None:
        if self.form == "eou" and self.kind == "example":
            raise ConfigError("reader 'dailydialog': kind: example needs form: parallel (dialogues hold no responses)")

    @property
    def joint(self) -> bool:
        """Whether the files belong together."""
        return self.form == "parallel"

    def read(self, paths: Sequence[Path]) -> Iterator[Dialogue | Example]:
        """Stream the dialogues, or the examples of parallel files.

        Raises:
            DataError: a dialogue of zero turns, or parallel files that do not match.
        """
        language = canonical(self.language)
        if self.form == "eou":
            for path in paths:
                yield from _dialogues(path, language)
            return
        if len(paths) % 2:
            raise DataError("form: parallel needs a file of contexts and a file of responses", paths[-1])
        for contexts, responses in zip(paths[::2], paths[1::2], strict=True):
            chain = _examples(contexts, responses, language)
            yield from chain if self.kind == "example" else _joined(chain)


def _dialogues(path: Path, language: str) -> Iterator[Dialogue]:
    number = 0
    for line, text in plain_lines(path):
        if not text.strip():
            continue
        number += 1
        turns = marked_turns(text)
        if not turns:
            raise DataError("the dialogue has zero turns", path, line)
        yield Dialogue(f"{path.stem}-{number}", language, turns)


def _examples(contexts: Path, responses: Path, language: str) -> Iterator[Example]:
    left, right = plain_lines(contexts), plain_lines(responses)
    dialogue, before = 0, None
    for (line, context), response in _pairs(left, right, contexts, responses):
        for path, text in ((contexts, context), (responses, response)):
            if not text.strip():
                raise DataError("the line is blank; contexts and responses are paired line by line", path, line)
        turns = marked_turns(context)
        if before is None or not turns or turns[-1].text != before:
            dialogue += 1
        before = response.strip()
        group = f"{contexts.stem}-{dialogue}"
        yield Example(f"{contexts.stem}-{line}", language, turns, Turn(before), {}, group, "human")


def _pairs(
    left: Iterator[tuple[int, str]], right: Iterator[tuple[int, str]], contexts: Path, responses: Path
) -> Iterator[tuple[tuple[int, str], str]]:
    last = 0
    for line, context in left:
        other = next(right, None)
        if other is None:
            raise DataError(f"ends after {last} lines, but {contexts.name} goes on: rows would shift", responses, last)
        last = line
        yield (line, context), other[1]
    if next(right, None) is not None:
        raise DataError(f"ends after {last} lines, but {responses.name} goes on: rows would shift", contexts, last)


def _joined(examples: Iterator[Example]) -> Iterator[Dialogue]:
    """Consecutive examples of one group as one dialogue."""
    name, language, turns = "", "", list[Turn]()
    for example in examples:
        if example.group != name:
            if turns:
                yield Dialogue(name, language, tuple(turns))
            name, language, turns = example.group, example.language, list(example.context)
        turns += [example.response] if example.response else []
    if turns:
        yield Dialogue(name, language, tuple(turns))
