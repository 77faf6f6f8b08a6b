"""Records as tables: frozen dataclasses to Arrow tables and back, and files of records in four formats.

The schema of a record type is derived from its annotations, so a table never disagrees with ``records.py``.
Mappings are stored as JSON text with sorted keys.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import itertools
import json
import operator
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from mdialeval.errors import DataError
from mdialeval.files import replace_atomically

Record = TypeVar("Record")
FORMATS = (".parquet", ".jsonl", ".csv", ".tsv")

_BATCH = 4096


@functools.cache
def schema(record: Any) -> pa.Schema:
    """The Arrow schema of a record type."""
    hints = typing.get_type_hints(record)
    return pa.schema([pa.field(f.name, _arrow(hints[f.name])) for f in dataclasses.fields(record)])


def to_table(records: Iterable[Any], record: type) -> pa.Table:
    """Records of one type as an Arrow table (also of no rows)."""
    return pa.Table.from_arrays(_arrays(list(records), record), schema=schema(typing.cast(Any, record)))


def from_table(table: pa.Table, record: type[Record]) -> list[Record]:
    """The records of an Arrow table written by ``to_table``."""
    return [item for batch in table.to_batches() for item in _records(batch, record)]


def write_parquet(path: Path, records: Iterable[Any], record: type) -> int:
    """Write records to a Parquet file, atomically and with the same bytes for the same records; the row count."""
    return write_table(path, to_table(records, record))


def write_table(path: Path, table: pa.Table) -> int:
    """Write a table in the schema of a record type as ``write_parquet`` writes its records; the row count."""

    def write(stream: typing.BinaryIO) -> None:
        pq.write_table(table, stream, compression="zstd", use_dictionary=True)

    replace_atomically(path, write)
    return int(table.num_rows)


def read_parquet(path: Path, record: type[Record]) -> Iterator[Record]:
    """Stream the records of a Parquet file; a few thousand are in memory at a time."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=_BATCH):
            yield from _records(batch, record)


def read_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """A Parquet file as a table of one chunk, or only some of its columns, in the order given."""
    with pq.ParquetFile(path) as file:
        table = file.read(columns=list(columns) if columns else None).combine_chunks()
    return table.select(list(columns)) if columns else table


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
def _fields(record: Any) -> tuple[tuple[str, Any], ...]:
    """(name, type) of each field of a record type."""
    hints = typing.get_type_hints(record)
    return tuple((f.name, _optional(hints[f.name])) for f in dataclasses.fields(record))


def _arrays(records: Sequence[Any], record: Any, some_missing: bool = False) -> list[pa.Array]:
    """One array a field; as a part of another record, a record may be None."""
    if not some_missing:
        return [_array(list(map(operator.attrgetter(name), records)), hint) for name, hint in _fields(record)]
    return [_array([None if r is None else getattr(r, name) for r in records], hint) for name, hint in _fields(record)]


def _array(values: list[Any], hint: Any) -> pa.Array:
    """The values of one field, column by column down to the leaves: far fewer Python calls than row by row."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        missing = [value is None for value in values]
        arrays = _arrays(values, hint, any(missing))
        return pa.StructArray.from_arrays(arrays, fields=list(_arrow(hint)), mask=pa.array(missing, pa.bool_()))
    if origin is tuple and arguments[-1] is Ellipsis:
        ends = itertools.accumulate((len(value or ()) for value in values), initial=0)
        items = [item for value in values for item in value or ()]
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), _array(items, arguments[0]), type=_arrow(hint))
    if origin is tuple:
        parts = zip(*values, strict=True) if values else [()] * len(arguments)
        arrays = [_array(list(part), argument) for part, argument in zip(parts, arguments, strict=True)]
        return pa.StructArray.from_arrays(arrays, fields=list(_arrow(hint)))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        values = [None if v is None else json.dumps(dict(v), sort_keys=True, ensure_ascii=False) for v in values]
    return pa.array(values, _arrow(hint))


def _records(batch: pa.RecordBatch | pa.StructArray, record: Any) -> list[Any]:
    """The records of a batch, or of a part of one; a column that is not there takes the field's default."""
    there = set(batch.schema.names if isinstance(batch, pa.RecordBatch) else batch.type.names)
    fields = [(name, hint) for name, hint in _fields(record) if name in there]
    column = batch.column if isinstance(batch, pa.RecordBatch) else batch.field
    columns = [_values(column(name), hint) for name, hint in fields]
    if len(fields) == len(_fields(record)):
        return list(map(record, *columns))
    names = [name for name, _ in fields]
    return [record(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


def _values(array: pa.Array, hint: Any) -> list[Any]:
    """The values of one column; what ``_array`` made of them."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if array.null_count == len(array):
        return [None] * len(array)
    if dataclasses.is_dataclass(hint):
        records = _records(array.filter(array.is_valid()) if array.null_count else array, hint)
        return _spread(records, array)
    if origin is tuple and arguments[-1] is Ellipsis:
        ends = list(itertools.accumulate(array.value_lengths().to_pylist(), initial=0))
        items = _values(array.flatten(), arguments[0])
        return [tuple(items[start:end]) for start, end in itertools.pairwise(ends)] if items else [()] * len(array)
    if origin is tuple:
        return list(zip(*(_values(array.field(i), a) for i, a in enumerate(arguments)), strict=True))
    plain = array.drop_null() if array.null_count else array
    values = plain.to_numpy(zero_copy_only=False).tolist()
    if isinstance(origin, type) and issubclass(origin, Mapping):
        values = [json.loads(value) for value in values]
    return _spread(values, array)


def _spread(values: list[Any], array: pa.Array) -> list[Any]:
    """The values where the array has some, None where it is null."""
    if not array.null_count:
        return values
    rest = iter(values)
    return [next(rest) if valid else None for valid in array.is_valid().to_numpy(zero_copy_only=False).tolist()]
