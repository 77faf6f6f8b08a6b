"""Language identification of many texts at once, and a run whose engine dies midway."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from mdialeval import api
from mdialeval.errors import BackendError
from mdialeval.translate.checks import check, identifiable
from mdialeval.translate.identify import identify, identify_all

TEXTS = [
    "Onde fica a estação de comboios mais próxima daqui?",
    "Where is the nearest railway station, please?",
    "qwrt zxcv bnmk plhg fdsa wqer tyui",
    "Wo ist hier bitte der nächste Bahnhof?",
]


def test_many_at_once_are_what_each_is_alone() -> None:
    found = identify_all([*TEXTS, *TEXTS], "pt")
    assert list(found) == TEXTS
    for text, answer in found.items():
        alone = identify(text, "pt")
        assert answer is not None and alone is not None
        assert answer.language == alone.language
        assert answer[1:] == pytest.approx(alone[1:], abs=1e-9)
    assert [answer.language for answer in found.values() if answer] == ["pt", "en", found[TEXTS[2]].language, "de"]  # type: ignore[union-attr]
    assert identify_all(["Wie geht es dir?"], "tlh") == {"Wie geht es dir?": None}
    assert identify_all([], "pt") == {}


def test_checks_take_languages_that_are_known_already() -> None:
    source = "Where is the station that is nearest to here?"
    flags = check(source, TEXTS[3], "en", "pt", identified=identify_all(TEXTS, "pt"))
    assert flags == check(source, TEXTS[3], "en", "pt")
    assert [flag.name for flag in flags] == ["wrong_language"]
    assert not identifiable("Wo ist er?")


class DiesMidway:
    """An engine that is gone for good after some sentences, while ``marker`` exists; it counts what it is asked."""

    placeholders = True
    identity = "dies-midway/1"

    def __init__(self, marker: str, log: str) -> None:
        self.marker, self.log, self.asked = Path(marker), Path(log), 0

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        self.asked += len(texts)
        if self.marker.exists() and self.asked > 12:
            raise BackendError("dies-midway", "connection lost", retryable=True)
        with self.log.open("a") as stream:
            stream.writelines(f"{text}\n" for text in texts)
        return [f"{text} pois" for text in texts]


def test_an_engine_that_dies_midway_loses_nothing(tmp_path: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    corpus = tmp_path / "d.jsonl"
    items = [{"id": f"d{i}", "language": "en", "turns": [f"Line {i}.", f"And answer {i}."]} for i in range(20)]
    corpus.write_text("\n".join(map(json.dumps, items)))
    marker, log = tmp_path / "marker", tmp_path / "log"
    marker.touch()

    def values(name: str) -> dict[str, object]:
        engine = "test_identify:DiesMidway"
        options = {engine: {"marker": str(marker), "log": str(log)}}
        return {
            "runs": str(tmp_path / name),
            "corpus": {"path": str(corpus)},
            "translate": {"routes": {"pt": engine}, "options": options},
            "execution": {"shard_size": 4, "max_failures": 3},
        }

    with pytest.raises(BackendError, match="connection lost"):
        api.translate(values("broken"))
    (folder,) = (tmp_path / "broken" / "default").glob("translate-*")
    assert len(list(folder.glob("part-*.parquet"))) == 1  # the first shard is whole, the second was never written
    assert not (folder / "manifest.json").exists()
    marker.unlink()
    mended = api.translate(values("broken")).stages[0]
    asked = log.read_text().splitlines()
    assert len(asked) == len(set(asked)) == 40  # what was translated before is not asked again
    whole = api.translate(values("whole")).stages[0]
    assert [p.read_bytes() for p in mended.shards()] == [p.read_bytes() for p in whole.shards()]
    assert {row.status for row in api.rows(mended)} == {"ok"}
