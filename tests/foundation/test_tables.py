"""Records survive every table format unchanged, and files are whole or absent."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import BinaryIO

import pytest

from mdialeval.errors import DataError
from mdialeval.files import replace_atomically, write_json
from mdialeval.records import (
    Agreement,
    Dialogue,
    Example,
    Flag,
    Graph,
    Prediction,
    RankedTranslation,
    TrainingPair,
    Translation,
    Turn,
)
from mdialeval.tables import FORMATS, from_table, read_parquet, to_table, write_parquet, write_records

TRANSLATION = Translation(
    "d1#0", "d1", 0, 'He said "no"\nTwice\t.', "Ele disse “não”", "en", "pt", "dummy", "ok", (Flag("loop", 0.5, "x"),)
)
RECORDS = [
    Dialogue("d1", "zh", (Turn("你好。", "A"), Turn("😂", None)), "d1"),
    Example("e1", "ar", (Turn("مرحبا"),), None, {"overall": 3.5}, "g1", "human"),
    TRANSLATION,
    RankedTranslation(TRANSLATION, None, None, False, "copied_source"),
    Graph("d1#0", 0, ("want-01", "-"), ((0, "polarity", 1),), (1,), "ok", ""),
    TrainingPair("p1", "en", (), Turn("Hi"), 1.0, "true_next", "g1"),
    Prediction("e1", "en", "length", "length", None, "empty", {"n_tokens": 0, "note": None}),
    Agreement("length", "x", "en", "length", "overall", 3, 2, "pearson", None, reason="fewer than 3 rows"),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: type(r).__name__)
def test_records_survive_arrow_and_parquet(record: object, tmp_path: Path) -> None:
    kind = type(record)
    assert from_table(to_table([record, record], kind), kind) == [record, record]
    assert write_parquet(tmp_path / "x.parquet", [record], kind) == 1
    assert list(read_parquet(tmp_path / "x.parquet", kind)) == [record]


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: type(r).__name__)
def test_an_empty_table_keeps_its_schema(record: object, tmp_path: Path) -> None:
    write_parquet(tmp_path / "x.parquet", [], type(record))
    assert list(read_parquet(tmp_path / "x.parquet", type(record))) == []


def test_parquet_bytes_are_the_same_for_the_same_records(tmp_path: Path) -> None:
    for name in ("a.parquet", "b.parquet"):
        write_parquet(tmp_path / name, RECORDS[:1] * 100, Dialogue)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


@pytest.mark.parametrize("ending", FORMATS)
def test_text_tables_have_one_line_a_row_or_quoted_cells(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"t{ending}"
    assert write_records(path, [TRANSLATION, TRANSLATION], Translation) == 2
    if ending in (".jsonl", ".tsv"):
        lines = path.read_text(encoding="utf-8").split("\n")
        assert len(lines) == (3 if ending == ".jsonl" else 4)


def test_an_unknown_file_ending_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"\.xlsx.*\.parquet, \.jsonl"):
        write_records(tmp_path / "t.xlsx", [TRANSLATION], Translation)


def test_a_full_disk_leaves_the_old_file_and_no_rest(tmp_path: Path) -> None:
    path = tmp_path / "part.bin"
    path.write_bytes(b"old")

    def write(stream: BinaryIO) -> None:
        stream.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        replace_atomically(path, write)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["part.bin"]


def test_json_refuses_nan(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "x.json", {"a": float("nan")})
    assert not (tmp_path / "x.json").exists()
