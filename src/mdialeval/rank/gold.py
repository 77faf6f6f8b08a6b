"""Translations with human quality scores, for checking quality estimators: MLQE-PE, WMT-QE, WMT DA."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mdialeval.errors import ConfigError, DataError
from mdialeval.languages import canonical
from mdialeval.readers.opening import csv_rows, json_rows, plain_lines, tsv_rows
from mdialeval.records import Translation, turn_id

_SOURCE = ("source", "original", "src")
_HYPOTHESIS = ("hypothesis", "translation", "mt")
_SCORE = ("score", "z_mean", "da", "mean")
_PAIR = ("lp", "language_pair")
_LINES = {".da": 1.0, ".score": 1.0, ".hter": -1.0}  # HTER counts edits: lower is better


@dataclass(frozen=True, slots=True)
class Gold:
    """A translation and what people thought of it (higher is better)."""

    translation: Translation
    score: float


def read_gold(path: str | Path, language: str | None = None, source_language: str | None = None) -> list[Gold]:
    """Read a gold file.

    Tables (``.tsv`` without quoting, ``.csv`` with, ``.jsonl``): the source is in ``source``, ``original`` or ``src``,
    the hypothesis in ``hypothesis``, ``translation`` or ``mt``, the score in ``score``, ``z_mean``, ``da`` or ``mean``,
    the languages in ``lp``, in the arguments or in the file's name.  Lines: any of ``x.src``, ``x.mt``, ``x.da`` (or
    ``x.hter``, whose sign is turned), beside which the others lie.

    Args:
        path: the file.
        language: of the hypotheses, where neither a column nor the name (``en-de``, ``ende``) says it.
        source_language: of the sources, likewise; English where nothing says it.

    Raises:
        DataError: a missing column or file, a score that is no number, or line files of different lengths (with all
            counts and the first line that looks shifted).
    """
    path = Path(path).expanduser()
    found = _languages_of(path.name)
    source = source_language or (found[0] if found else "en")
    target = language or (found[1] if found else None)
    if path.suffix in (".src", ".mt", *_LINES):
        rows = list(_parallel(path.with_suffix("")))
    else:
        rows = list(_table(path))
    gold = []
    for line, pair, source_text, hypothesis, score in rows:
        spoken = _languages_of(pair) if pair else None
        code = spoken[1] if spoken else target
        if code is None:
            raise ConfigError(f"{path}: neither a column lp nor the file's name says the language: name it")
        item = f"{path.name}:{line}"
        record = Translation(
            turn_id(item, 0), item, 0, source_text, hypothesis,
            canonical(spoken[0] if spoken else source), canonical(code), "gold",
        )  # fmt: skip
        gold.append(Gold(record, score))
    if not gold:
        raise DataError("holds no rows", path)
    return gold


def _table(path: Path) -> Iterator[tuple[int, str, str, str, float]]:
    readers: Mapping[str, Any] = {".tsv": tsv_rows, ".csv": csv_rows, ".jsonl": json_rows}
    if path.suffix not in readers:
        raise ConfigError(f"{path}: gold files end in {', '.join([*readers, '.src', '.mt', *_LINES])}")
    for line, row in readers[path.suffix](path):
        source, hypothesis, score = (_cell(row, names, path, line) for names in (_SOURCE, _HYPOTHESIS, _SCORE))
        pair = next((str(row[name]) for name in _PAIR if row.get(name)), "")
        yield line, pair, str(source), str(hypothesis), _number(score, path, line)


def _cell(row: Mapping[str, Any], names: Sequence[str], path: Path, line: int) -> Any:
    for name in names:
        if name in row:
            return row[name]
    raise DataError(f"no column {' or '.join(map(repr, names))}; found {', '.join(row)}", path, line)


def _number(value: Any, path: Path, line: int) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise DataError(f"{value!r} is not a score", path, line) from None
    if not math.isfinite(number):
        raise DataError(f"the score is {value}: leave the row out, or give it a number", path, line)
    return number


def _parallel(base: Path) -> Iterator[tuple[int, str, str, str, float]]:
    """The rows of ``base.src``, ``base.mt`` and ``base.da`` (``.score``, ``.hter``)."""
    parent = base.parent
    ending = next((e for e in _LINES if (parent / (base.name + e)).is_file()), ".da")
    paths = [parent / (base.name + e) for e in (".src", ".mt", ending)]
    columns = [[text for _, text in plain_lines(path)] for path in paths]
    counts = [len(column) for column in columns]
    if len(set(counts)) > 1:
        raise DataError(_mismatch(paths, columns), paths[counts.index(min(counts))])
    for line, (source, hypothesis, score) in enumerate(zip(*columns, strict=True), start=1):
        yield line, "", source, hypothesis, _LINES[ending] * _number(score, paths[2], line)


def _mismatch(paths: Sequence[Path], columns: Sequence[Sequence[str]]) -> str:
    counts = ", ".join(f"{path.name} {len(column)}" for path, column in zip(paths, columns, strict=True))
    source, hypothesis, scores = columns
    if len(source) != len(hypothesis):
        line, why = first_shift(source, hypothesis)
    else:
        line = next(
            (i for i, text in enumerate(scores, start=1) if not _is_number(text)), min(len(scores), len(source)) + 1
        )
        why = "the first that is no score, or the first that is missing"
    return f"the files have different numbers of lines ({counts}); look at line {line}: {why}"


def first_shift(source: Sequence[str], hypothesis: Sequence[str]) -> tuple[int, str]:
    """Where two line files of different lengths probably part: the 1-based line, and why.

    An empty line in one file only comes first.  Else the place is found that makes the lengths agree best when the
    surplus lines are taken out there: left of it line i belongs to line i, right of it to line i + surplus.

    >>> first_shift(["one", "two words", "a very long line of text", "x"], ["eins", "ein sehr langer Satz", "x"])[0]
    2
    """
    for line, (one, other) in enumerate(zip(source, hypothesis, strict=False), start=1):
        if bool(one.strip()) != bool(other.strip()):
            return line, "it is empty in one file only"
    long, short = (source, hypothesis) if len(source) > len(hypothesis) else (hypothesis, source)
    surplus = len(long) - len(short)
    left = [math.log((len(a) + 1) / (len(b) + 1)) for a, b in zip(long, short, strict=False)]
    right = [math.log((len(a) + 1) / (len(b) + 1)) for a, b in zip(long[surplus:], short, strict=True)]
    usual = statistics.median([*left, *right]) if short else 0.0
    cost = sum(abs(value - usual) for value in right)
    best, place = cost, 0
    for i, (before, after) in enumerate(zip(left, right, strict=True), start=1):
        cost += abs(before - usual) - abs(after - usual)
        if cost < best:
            best, place = cost, i
    return place + 1, f"from here on the lengths agree when {surplus} line(s) are taken out of the longer file"


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _languages_of(name: str) -> tuple[str, str] | None:
    """The language pair in a name: ``en-de``, ``en_de`` or ``ende``.

    >>> _languages_of("test20.ende.df.short.tsv"), _languages_of("test21.enja.src"), _languages_of("gold.tsv")
    (('en', 'de'), ('en', 'ja'), None)
    """
    for part in re.split(r"[./]", name):
        if (match := re.fullmatch(r"([a-z]{2,3})[-_]([a-z]{2,3})|([a-z]{2})([a-z]{2})", part)) is not None:
            pair = (match[1] or match[3], match[2] or match[4])
            try:
                if all(map(canonical, pair)):
                    return pair
            except ConfigError:
                continue
    return None
