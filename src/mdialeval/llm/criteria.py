"""The criteria of the judge and their prompts: one TOML file a criterion and language, versioned by its hash.

A language without a file of its own is judged with an English prompt, and every prediction says so.  A folder of the
user's own files (``<folder>/<language>/<criterion>.toml``) is looked at first; it may add criteria and languages.
"""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mdialeval.errors import ConfigError, DataError, nearest
from mdialeval.signature import fingerprint

PROMPTS = Path(__file__).with_name("prompts")
FALLBACK = "en"
FRAME = "frame"

Level = Literal["turn", "dialogue"]


@dataclass(frozen=True, slots=True)
class Criterion:
    """One question to the judge, in one language.

    Attributes:
        level: whether a response or a whole dialogue is rated.
        context: whether the judge sees the conversation before the response.
        question: what is asked.
        low, high: what the lowest and the highest score mean.
    """

    name: str
    level: Level
    context: bool
    question: str
    low: str
    high: str


@dataclass(frozen=True, slots=True)
class Frame:
    """What all criteria of a language share; ``$low``, ``$high`` and ``$probability`` are filled in.

    Attributes:
        turn, dialogue: the task line.
        guard: that what stands between tags is material, never an instruction.
        context_label, response_label, dialogue_label: headings of the blocks.
        opening: what stands in place of an empty context.
        evaluator: how to read the evaluator's ``$probability``.
        graph: how to read the graph.
        answer: what the answer looks like.
        score: the label before the score.
    """

    turn: str
    dialogue: str
    guard: str
    context_label: str
    response_label: str
    dialogue_label: str
    opening: str
    evaluator: str
    graph: str
    answer: str
    score: str


@dataclass(frozen=True, slots=True)
class PromptText:
    """A criterion with its frame.

    Attributes:
        language: of the texts: the dialogue's, or ``en``.
        version: hash of all the texts.
    """

    criterion: Criterion
    frame: Frame
    language: str
    version: str


def criteria(folder: str | Path | None = None) -> list[str]:
    """The names of all criteria, the user's among them."""
    roots = [PROMPTS] if folder is None else [PROMPTS, Path(folder)]
    return sorted({path.stem for root in roots for path in root.glob("*/*.toml")} - {FRAME})


def prompt_text(criterion: str, language: str, folder: str | Path | None = None) -> PromptText:
    """The prompt of a criterion for dialogues of a language.

    Args:
        criterion: the name of a file.
        language: canonical code; ``pt-PT`` takes the files of ``pt`` where it has none, and English comes last.
        folder: the user's own files, looked at first.

    Raises:
        ConfigError: no such criterion, or no such folder.
        DataError: a file lacks a key, has an unknown one, or a value of the wrong kind.
    """
    return _prompt_text(criterion, language, None if folder is None else str(folder))


@functools.cache
def _prompt_text(criterion: str, language: str, folder: str | None) -> PromptText:
    if folder is not None and not Path(folder).is_dir():
        raise ConfigError(f"llm prompts: no folder {folder} (working folder: {Path.cwd()})")
    for code in dict.fromkeys((language, language.partition("-")[0], FALLBACK)):
        if path := _find(criterion, code, folder):
            frame = _find(FRAME, code, folder) or _find(FRAME, FALLBACK, folder)
            if frame is None:
                raise DataError("there is no frame.toml beside it", path)
            asked = Criterion(criterion, **_read(path, Criterion))
            shared = Frame(**_read(frame, Frame))
            version = fingerprint([path.read_text(encoding="utf-8"), frame.read_text(encoding="utf-8")])
            return PromptText(asked, shared, code, version)
    known = criteria(folder)
    raise ConfigError(
        f"unknown criterion {criterion!r}: {nearest(criterion, known)} (your own: {FALLBACK}/{criterion}.toml in the "
        "folder that `folder` names)"
    )


def _find(name: str, language: str, folder: str | None) -> Path | None:
    roots = [PROMPTS] if folder is None else [Path(folder), PROMPTS]
    return next((path for root in roots if (path := root / language / f"{name}.toml").is_file()), None)


def _read(path: Path, record: type) -> dict[str, Any]:
    """The fields of a record from a TOML file."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"is not TOML in UTF-8: {error}", path) from None
    known = [name for name in record.__dataclass_fields__ if name != "name"]  # type: ignore[attr-defined]
    for name in values:
        if name not in known:
            raise DataError(f"unknown key: {nearest(name, known)}", path, field=name)
    for name in known:
        wanted = bool if name == "context" else str
        if not isinstance(values.get(name), wanted):
            raise DataError(
                f"this key is needed, as a {'true or false' if wanted is bool else 'text'}", path, field=name
            )
    if record is Criterion and values["level"] not in ("turn", "dialogue"):
        raise DataError(f"{values['level']!r} is neither turn nor dialogue", path, field="level")
    return values
