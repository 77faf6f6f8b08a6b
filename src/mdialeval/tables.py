"""Records as tables: frozen dataclasses to Arrow tables and back, and files of records in four formats.

The schema of a record type is derived from its annotations, so a table never disagrees with ``records.py``.
Mappings are stored as JSON text with sorted keys.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import json
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from mdialeval.errors import DataError
from mdialeval.files import replace_atomically

Record = TypeVar("Record")
FORMATS = (".parquet", ".jsonl", ".csv", ".tsv")


@functools.cache
def schema(record: Any) -> pa.Schema:
    """The Arrow schema of a record type."""
    hints = typing.get_type_hints(record)
    return pa.schema([pa.field(f.name, _arrow(hints[f.name])) for f in dataclasses.fields(record)])


def to_table(records: Iterable[Any], record: type) -> pa.Table:
    """Records of one type as an Arrow table (also of no rows)."""
    return pa.Table.from_pylist([to_row(r) for r in records], schema=schema(typing.cast(Any, record)))


def from_table(table: pa.Table, record: type[Record]) -> list[Record]:
    """The records of an Arrow table written by ``to_table``."""
    build = _builder(typing.cast(Any, record))
    return [build(row) for row in table.to_pylist()]


def to_row(record: Any) -> dict[str, Any]:
    """A record as the plain values of its schema: tuples become lists, nested records dicts, mappings JSON text."""
    return _encoder(typing.cast(Any, type(record)))(record)


def from_row(row: Mapping[str, Any], record: type[Record]) -> Record:
    """The record of a row made by ``to_row``."""
    build: Callable[[Mapping[str, Any]], Record] = _builder(typing.cast(Any, record))
    return build(row)


def write_parquet(path: Path, records: Iterable[Any], record: type) -> int:
    """Write records to a Parquet file, atomically and with the same bytes for the same records; the row count."""
    table = to_table(records, record)

    def write(stream: typing.BinaryIO) -> None:
        pq.write_table(table, stream, compression="zstd", use_dictionary=True)

    replace_atomically(path, write)
    return int(table.num_rows)


def read_parquet(path: Path, record: type[Record], columns: Sequence[str] | None = None) -> Iterator[Record]:
    """Read records, one row group at a time."""
    build = _builder(typing.cast(Any, record))
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=4096, columns=list(columns) if columns else None):
            for row in batch.to_pylist():
                yield build(row)


def write_records(path: Path, records: Iterable[Any], record: type) -> int:
    """Write records to ``.parquet``, ``.jsonl``, ``.csv`` or ``.tsv`` by the file's ending; the row count.

    In CSV and TSV nested values are JSON text, and TSV escapes tabs and line ends as ``\\t`` and ``\\n``.
    """
    _known(path)
    if path.suffix == ".parquet":
        return write_parquet(path, records, record)
    rows = 0

    def write(stream: typing.BinaryIO) -> None:
        nonlocal rows
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        names = [f.name for f in dataclasses.fields(record)]
        table = csv.writer(text, lineterminator="\r\n")  # as RFC 4180, and so that a lone \r is quoted
        if path.suffix == ".csv":
            table.writerow(names)
        elif path.suffix == ".tsv":
            text.write("\t".join(names) + "\n")
        for item in records:
            row = {f.name: _json(getattr(item, f.name)) for f in dataclasses.fields(item)}
            if path.suffix == ".jsonl":
                text.write(json.dumps(row, ensure_ascii=False) + "\n")
            elif path.suffix == ".csv":
                table.writerow([_cell(row[n]) for n in names])
            else:
                text.write("\t".join(_escape(_cell(row[n])) for n in names) + "\n")
            rows += 1
        text.flush()
        text.detach()

    replace_atomically(path, write)
    return rows


def _known(path: Path) -> None:
    if path.suffix not in FORMATS:
        raise DataError(f"unknown file ending {path.suffix!r}: use one of {', '.join(FORMATS)}", path)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _json(value: Any) -> Any:
    """A record's value as JSON: nested records and mappings become objects."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [_json(v) for v in value]
    return dict(value) if isinstance(value, Mapping) else value


def _optional(hint: Any) -> Any:
    """The type inside ``X | None``, or the type itself."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        rest = [a for a in typing.get_args(hint) if a is not type(None)]
        return rest[0]
    return hint


def _arrow(hint: Any) -> pa.DataType:
    hint = _optional(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return pa.struct(list(schema(typing.cast(Any, hint))))
    if origin is typing.Literal:
        return pa.string()
    if origin is tuple and arguments[-1] is Ellipsis:
        return pa.list_(_arrow(arguments[0]))
    if origin is tuple:
        return pa.struct([pa.field(f"f{i}", _arrow(a)) for i, a in enumerate(arguments)])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return pa.string()
    return {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}[hint]


@functools.cache
def _encoder(record: Any) -> Callable[[Any], dict[str, Any]]:
    hints = typing.get_type_hints(record)
    parts = [(f.name, _writer(hints[f.name])) for f in dataclasses.fields(record)]
    return lambda value: {name: write(getattr(value, name)) for name, write in parts}


def _writer(hint: Any) -> Callable[[Any], Any]:
    hint = _optional(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        encode = _encoder(typing.cast(Any, hint))
        return lambda value: None if value is None else encode(value)
    if origin is tuple and arguments[-1] is Ellipsis:
        item = _writer(arguments[0])
        return lambda value: [item(v) for v in value]
    if origin is tuple:
        return lambda value: {f"f{i}": v for i, v in enumerate(value)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return lambda value: json.dumps(dict(value), sort_keys=True, ensure_ascii=False)
    return lambda value: value


@functools.cache
def _builder(record: Any) -> Callable[[Mapping[str, Any]], Any]:
    hints = typing.get_type_hints(record)
    parts = [(f.name, _reader(hints[f.name])) for f in dataclasses.fields(typing.cast(Any, record))]

    def build(row: Mapping[str, Any]) -> Any:
        return record(**{name: read(row[name]) for name, read in parts if name in row})

    return build


def _reader(hint: Any) -> Callable[[Any], Any]:
    hint = _optional(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        build = _builder(typing.cast(Any, hint))
        return lambda value: None if value is None else build(value)
    if origin is tuple and arguments[-1] is Ellipsis:
        item = _reader(arguments[0])
        return lambda value: tuple(item(v) for v in value)
    if origin is tuple:
        return lambda value: tuple(value.values()) if isinstance(value, Mapping) else tuple(value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return lambda value: json.loads(value) if isinstance(value, str) else value
    return lambda value: value
