"""How every reader opens files: UTF-8 with or without a byte-order mark, line numbers in every error, rows counted.

Words such as ``None``, ``NA``, ``NaN`` and ``null`` stay text.  CSV is read with quoting, TSV without, and each row's
number of fields is checked, so that an unbalanced quote cannot swallow rows unseen.
"""

from __future__ import annotations

import csv
import json
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from mdialeval.errors import DataError
from mdialeval.readers.releases import check_rows

logger = logging.getLogger(__name__)
Row = TypeVar("Row")

LONGEST_CELL = 1 << 24
"""Characters of the longest CSV cell; Python's own limit of 131,072 is too small for long dialogues."""


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a text file with their 1-based numbers, line ends kept.

    Raises:
        DataError: no such file, not UTF-8, or a NUL byte; names the line.
    """
    try:
        stream = open(path, "rb")  # noqa: SIM115 - only opening it is guarded; closed below
    except OSError as error:
        raise DataError(f"cannot be opened: {error.strerror}", path) from None
    with stream:
        for number, raw in enumerate(stream, start=1):
            if number == 1 and raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
                raise DataError("is UTF-16: save it as UTF-8", path, 1)
            if b"\0" in raw:
                raise DataError("holds a NUL byte: is this a text file in UTF-8?", path, number)
            try:
                yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                place = f"byte {error.object[error.start]:#04x} at position {error.start + 1} of the line"
                raise DataError(f"is not UTF-8 ({place}): save it as UTF-8", path, number) from None


def plain_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a plain text file without their line ends, counted; blank lines stay, since rows are parallel."""
    return counted(path, ((number, line.rstrip("\r\n")) for number, line in text_lines(path)))


def csv_cells(path: Path, delimiter: str | None = None) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file as (line where the row starts, cells), blank lines left out, not yet counted.

    Args:
        path: the file.
        delimiter: one character; found from the first line where None (``,`` or ``;``).

    Raises:
        DataError: unbalanced quotes, or a file that is not comma- or semicolon-separated.
    """
    if delimiter is None:
        delimiter = _delimiter(path)
    csv.field_size_limit(LONGEST_CELL)
    table = csv.reader((line for _, line in text_lines(path)), delimiter=delimiter, strict=True)
    start = 1
    try:
        for cells in table:
            if cells:
                yield start, cells
            start = table.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"the row that starts here is broken ({error}): is a quote opened and never closed? "
            'Inside a quoted cell write "" for a quote; a file without quoting is read by the reader tsv',
            path,
            start,
        ) from None


def csv_rows(path: Path, delimiter: str | None = None) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a CSV file with a header as (line, column -> cell), counted.

    Raises:
        DataError: as ``csv_cells``, a repeated column name, or a row with another number of fields than the header.
    """
    return counted(path, _named(path, csv_cells(path, delimiter)))


def tsv_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a TSV file with a header as (line, column -> cell), counted; quotes are ordinary characters.

    Raises:
        DataError: a repeated column name, or a row with another number of fields than the header.
    """
    lines = ((number, line.rstrip("\r\n")) for number, line in text_lines(path))
    return counted(path, _named(path, ((number, line.split("\t")) for number, line in lines if line)))


def json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON Lines file as (line, object), counted; a file that is one JSON list is read too.

    Raises:
        DataError: a line that is not a JSON object; names line and column.
    """
    return counted(path, _json_rows(path))


def load_json(path: Path) -> Any:
    """The value of a JSON file.

    Raises:
        DataError: not JSON; names line and column.
    """
    return _parsed("".join(line for _, line in text_lines(path)), path, 1)


def counted(path: Path, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows as they are; their number is logged, and checked where the file is a known release."""
    number, complete = 0, False
    try:
        for row in rows:
            number += 1
            yield row
        complete = True
    finally:
        logger.info("%s: %d rows read%s", path, number, "" if complete else ", then stopped")
    check_rows(path, number)


def _named(path: Path, rows: Iterable[tuple[int, list[str]]]) -> Iterator[tuple[int, dict[str, str]]]:
    header: list[str] | None = None
    for line, cells in rows:
        if header is None:
            header = [name.strip() for name in cells]
            repeated = sorted({name for name in header if name and header.count(name) > 1})
            if repeated:
                raise DataError(f"the header names {', '.join(map(repr, repeated))} twice: rename one", path, line)
            continue
        if len(cells) != len(header):
            raise DataError(
                f"this row has {len(cells)} fields, the header has {len(header)}: look for a missing or an extra "
                "separator, a line end inside a cell, or an unbalanced quote in or just before this row",
                path,
                line,
            )
        yield line, dict(zip(header, cells, strict=True))


def _delimiter(path: Path) -> str:
    first = next((line for _, line in text_lines(path) if line.strip()), "")
    try:
        counts = {mark: len(next(csv.reader([first], delimiter=mark), [])) for mark in ",;\t"}
    except csv.Error:  # the reading itself says where and why
        return ","
    if counts[","] > 1 or counts[";"] < 2:
        if counts["\t"] > 1 and counts[","] < 2:
            raise DataError("is separated by tabs: use the reader tsv", path, 1)
        return ","
    logger.warning("%s: separated by ';', not ',' (as some spreadsheets write CSV); read so", path)
    return ";"


def _json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, text in text_lines(path):
        if text.isspace():
            continue
        if text.lstrip().startswith("["):
            yield from _json_list(path)
            return
        value = _parsed(text, path, line)
        if not isinstance(value, dict):
            raise DataError(f"a row is a JSON object, this is {type(value).__name__}", path, line)
        yield line, value


def _json_list(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    values = load_json(path)
    for number, value in enumerate(values if isinstance(values, list) else [values], start=1):
        if not isinstance(value, dict):
            raise DataError(f"item {number} of the list is {type(value).__name__}, not a JSON object", path)
        yield number, value


def _parsed(text: str, path: Path, line: int) -> Any:
    def refuse(constant: str) -> None:
        raise DataError(f"{constant} is not JSON: write null where a value is missing", path, line)

    try:
        value = json.loads(text, parse_constant=refuse)
        if "\\u" in text:  # an escaped half of a surrogate pair is not text and could not be written again
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        where = line + min(error.lineno - 1, text.rstrip("\r\n").count("\n"))
        raise DataError(f"is not JSON ({error.msg}, column {error.colno})", path, where) from None
    except UnicodeEncodeError:
        raise DataError("holds half of a surrogate pair (\\ud800 to \\udfff) in a text", path, line) from None
    except RecursionError:
        raise DataError("is nested too deeply", path, line) from None
    return value
