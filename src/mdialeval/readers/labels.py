"""Human labels: numbers on a declared scale.  What lies outside is listed, never bent into the scale."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple

from mdialeval.errors import ConfigError, DataError

logger = logging.getLogger(__name__)
Scale = tuple[float, float]
SHOWN = 20
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z", re.ASCII)


class OutsideLabel(NamedTuple):
    """A label that is no number or lies outside its scale."""

    line: int
    dimension: str
    value: str


class LabelError(DataError):
    """Labels outside the declared scale; ``labels`` holds all of them, the message the first twenty."""

    def __init__(self, problem: str, path: Path, labels: list[OutsideLabel]) -> None:
        super().__init__(problem, path)
        self.labels = tuple(labels)


class LabelCheck:
    """Reads the labels of one file and collects what lies outside.

    Use as a context manager around the reading: on leaving it (also where the reader is stopped early) the labels
    outside are raised as one ``LabelError``, or, with ``outside="drop"``, listed in a warning.

    Args:
        path: the file.
        scales: dimension -> (lowest, highest); a dimension without a scale takes any finite number.
        outside: ``error``, or ``drop`` to leave such rows unrated.
    """

    def __init__(self, path: Path, scales: Mapping[str, Scale], outside: Literal["error", "drop"] = "error") -> None:
        self.path, self.scales, self.outside = path, scales, outside
        self.found: list[OutsideLabel] = []

    def value(self, dimension: str, raw: Any, line: int) -> float | None:
        """The label as a number; None where the cell is empty or the label lies outside."""
        if is_missing(raw):
            return None
        number = as_number(raw)
        low, high = self.scales.get(dimension, (-math.inf, math.inf))
        if number is None or not low <= number <= high:
            self.found.append(OutsideLabel(line, dimension, str(raw)))
            return None
        return number

    def values(self, raw: Mapping[str, Any], line: int) -> dict[str, float]:
        """The labels of a row by dimension, without those that are missing or lie outside."""
        read = {dimension: self.value(dimension, value, line) for dimension, value in raw.items()}
        return {dimension: value for dimension, value in read.items() if value is not None}

    def mean(self, dimension: str, raw: list[Any], line: int) -> float | None:
        """The mean of several raters' labels; None where none is usable."""
        usable = [value for value in (self.value(dimension, cell, line) for cell in raw) if value is not None]
        return sum(usable) / len(usable) if usable else None

    def means(self, votes: Mapping[str, Any], line: int) -> dict[str, float]:
        """Dimension -> mean of its votes (a list, or a single label), without those that have no usable vote."""
        lists = {dimension: cells if isinstance(cells, list) else [cells] for dimension, cells in votes.items()}
        means = {dimension: self.mean(dimension, cells, line) for dimension, cells in lists.items()}
        return {dimension: mean for dimension, mean in means.items() if mean is not None}

    def __enter__(self) -> LabelCheck:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.found and (kind is None or issubclass(kind, GeneratorExit)):
            if self.outside == "error":
                raise LabelError(self._message(), self.path, self.found)
            logger.warning("%s: %s", self.path, self._message())

    def _message(self) -> str:
        shown = ", ".join(f"line {line} {dimension}={value!r}" for line, dimension, value in self.found[:SHOWN])
        more = f" and {len(self.found) - SHOWN} more" if len(self.found) > SHOWN else ""
        names = sorted({label.dimension for label in self.found})
        limits = {name: "[{:g}, {:g}]".format(*self.scales[name]) for name in names if name in self.scales}
        scales = ", ".join(f"{name} {limits.get(name, '(a number)')}" for name in names)
        if any(re.fullmatch(r"\d+,\d+", label.value) for label in self.found):
            more += "; decimals are written with a point"
        done = "left unrated" if self.outside == "drop" else "mend them, declare another scale, or set outside: drop"
        return f"{len(self.found)} labels outside the declared scale {scales}: {shown}{more}; {done}"


def is_missing(value: Any) -> bool:
    """Whether a cell is empty: no value, no text, or Parquet's not-a-number.  The word ``None`` is text.

    >>> [is_missing(v) for v in (None, "", float("nan"), "None", "NA", " ", 0)]
    [True, True, True, False, False, False, False]
    """
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def as_number(value: Any) -> float | None:
    """A finite number from a cell, or None.

    >>> as_number(" 4.5"), as_number("4,5"), as_number("nan"), as_number("1_0"), as_number(True)
    (4.5, None, None, None, None)
    """
    if isinstance(value, str):
        return float(value) if _NUMBER.match(value := value.strip()) and math.isfinite(float(value)) else None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None


def annotations_of(row: Mapping[str, Any], path: Path, line: int) -> dict[str, list[Any]]:
    """Dimension -> votes of a JSON row's ``annotations``; a single label is a list of one.

    Raises:
        DataError: not an object.
    """
    given = row.get("annotations") or {}
    if not isinstance(given, Mapping):
        raise DataError("should be an object: dimension -> votes", path, line, "annotations")
    return {dimension_of(name): votes if isinstance(votes, list) else [votes] for name, votes in given.items()}


def dimension_of(name: str) -> str:
    """What this project calls a dimension of another corpus: its name in lower case, joined by underscores.

    >>> dimension_of("Maintains Context"), dimension_of("human (overall)"), dimension_of("Understandable")
    ('maintains_context', 'human_overall', 'understandability')
    """
    plain = "_".join(re.findall(r"[a-z0-9]+", name.lower()))
    return "understandability" if plain == "understandable" else plain


def as_scales(scales: Mapping[str, Any]) -> dict[str, Scale]:
    """Scales as (lowest, highest) pairs of numbers.

    Raises:
        ConfigError: lists every scale that is not a rising pair.

    >>> as_scales({"fluency": [1, 5]})
    {'fluency': (1.0, 5.0)}
    """
    read, problems = {}, []
    for name, pair in scales.items():
        numbers = [as_number(v) for v in pair] if isinstance(pair, (list, tuple)) else []
        if len(numbers) == 2 and numbers[0] is not None and numbers[1] is not None and numbers[0] < numbers[1]:
            read[name] = (numbers[0], numbers[1])
        else:
            problems.append(f"scale of {name!r}: give the lowest and the highest value, such as [1, 5], not {pair!r}")
    if problems:
        raise ConfigError(problems)
    return read
