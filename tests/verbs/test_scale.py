"""Corpora in shards: every driver leaves the same bytes, whatever dies, and the columnar passes equal the plain ones."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ruamel.yaml import YAML

import mdialeval.pipeline
from mdialeval import api
from mdialeval.errors import BackendError, DataError, ResumeError
from mdialeval.rank.columns import LEFT_OUT, ColumnsBuilder
from mdialeval.rank.select import select
from mdialeval.records import Dialogue, Flag, RankedTranslation, Translation
from mdialeval.store import Run, Stage
from mdialeval.tables import from_table, to_table
from mdialeval.verbs import estimate, parse, translate
from mdialeval.verbs.rank import _ranked

Small = Callable[..., dict[str, Any]]

LINE = ("Shall we meet at the station?", "7", "At nine, by the clock.", "Fine.", "😂", "Then bring the blue umbrella.")


class Odd:
    """An estimator that cannot score every third row and gives all others the same score."""

    identity = "estimator:odd"
    higher_is_better = True

    def estimate(self, pairs: Sequence[Translation]) -> list[float]:
        return [math.nan if row.turn % 3 == 0 else 0.5 for row in pairs]


class DiesOnce:
    """An estimator whose process is gone in the middle of its first shard; ``marker`` remembers that it happened."""

    identity = "estimator:dies-once"
    higher_is_better = True

    def __init__(self, marker: str) -> None:
        self.marker = Path(marker)

    def estimate(self, pairs: Sequence[Translation]) -> list[float]:
        with contextlib.suppress(FileExistsError):
            self.marker.touch(exist_ok=False)
            os._exit(1)
        return [len(row.hypothesis) / 100 for row in pairs]


class FailsOnTheFirstRank(Odd):
    """An estimator that works in every process but that of rank 0."""

    def estimate(self, pairs: Sequence[Translation]) -> list[float]:
        if os.environ.get("RANK") == "0":
            raise BackendError("odd", "out of order")
        return super().estimate(pairs)


def _shards(run: Path, *verbs: str) -> dict[str, bytes]:
    """Shards and manifests of the stages of some verbs, by relative name."""
    return {
        path.relative_to(run).as_posix(): path.read_bytes()
        for verb in verbs
        for path in sorted(run.glob(f"{verb}-*/*"))
        if path.name != "timing.json"
    }


@pytest.fixture(scope="module")
def ray_stopped() -> Iterator[None]:
    ray = pytest.importorskip("ray")
    yield
    ray.shutdown()


@pytest.mark.usefixtures("ray_stopped")
def test_ray_leaves_the_bytes_of_the_local_driver(small_run: Small, tmp_path: Path) -> None:
    values = small_run(translate={"routes": {"pt": "dummy", "ja": "dummy"}})
    values["score"] = {**values["score"], "scorers": [{"scorer": "length"}]}
    local = api.rank(values).run
    api.score({**values, "train": {}, "corpus": None})
    values |= {"runs": str(tmp_path / "ray"), "execution": {"shard_size": 5, "engine": "ray", "workers": 2}}
    there = api.rank(values).run
    api.score({**values, "train": {}, "corpus": None})
    expected = _shards(local, "read", "translate", "rank", "score")
    assert len(expected) > 20
    assert _shards(there, "read", "translate", "rank", "score") == expected


@pytest.mark.usefixtures("ray_stopped")
def test_a_killed_ray_worker_s_shard_is_done_again(small_run: Small, tmp_path: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    marker = tmp_path / "died"
    options = {"marker": str(marker)}
    values = small_run(rank={"estimator": "test_scale:DiesOnce", "options": options})
    values["execution"] = {"shard_size": 2, "engine": "ray", "workers": 2}
    ranked = api.rank(values).run
    assert marker.exists()
    values = {**values, "runs": str(tmp_path / "local"), "execution": {"shard_size": 2}}
    assert _shards(api.rank(values).run, "rank") == _shards(ranked, "rank")


def _yaml(values: dict[str, Any], path: Path) -> Path:
    with open(path, "w", encoding="utf-8") as stream:
        YAML().dump(json.loads(json.dumps(values)), stream)
    return path


def _command(verb: str, config: Path, rank: int | None = None, *more: str, **environment: str) -> subprocess.Popen[str]:
    ranks = {} if rank is None else {"RANK": str(rank), "WORLD_SIZE": "2"}
    return subprocess.Popen(
        [sys.executable, "-m", "mdialeval", verb, str(config), "--quiet", *more],
        env={**os.environ, **ranks, **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_two_ranks_of_the_command_line_leave_the_bytes_of_one_process(small_run: Small, tmp_path: Path) -> None:
    local = api.rank(small_run()).run
    config = _yaml({**small_run(), "runs": str(tmp_path / "ranks")}, tmp_path / "c.yaml")
    ranks = [_command("rank", config, rank) for rank in range(2)]
    said = [rank.communicate(timeout=120) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], said
    assert said[0][0] == said[1][0]
    verbs = ("read", "translate", "rank")
    assert _shards(tmp_path / "ranks" / "small", *verbs) == _shards(local, *verbs)


def test_a_rank_that_fails_ends_the_wait_of_the_other(small_run: Small, tmp_path: Path) -> None:
    config = _yaml(small_run(rank={"estimator": "test_scale:FailsOnTheFirstRank"}), tmp_path / "c.yaml")
    ranks = [_command("rank", config, rank, PYTHONPATH=str(Path(__file__).parent)) for rank in range(2)]
    said = [rank.communicate(timeout=120)[1] for rank in ranks]
    assert ranks[0].returncode == BackendError.exit_code, said
    assert ranks[1].returncode == ResumeError.exit_code, said
    assert "rank 0 stopped (BackendError: odd: out of order)" in said[1]


def test_a_full_disk_stops_with_a_message_and_leaves_no_half_shard(small_run: Small, tmp_path: Path) -> None:
    whole = api.rank(small_run()).run
    limit = max(p.stat().st_size for p in whole.glob("translate-*/part-*.parquet"))
    config = _yaml({**small_run(), "runs": str(tmp_path / "full")}, tmp_path / "c.yaml")
    script = (
        "import resource, sys; from mdialeval import api; from mdialeval.store import Stage;"
        "write = Stage.write\n"
        "def limited(stage, *args):\n"
        f"    if stage.verb == 'translate': resource.setrlimit(resource.RLIMIT_FSIZE, ({limit // 2}, -1))\n"
        "    return write(stage, *args)\n"
        "Stage.write = limited\n"
        f"api.rank({str(config)!r})"
    )
    ended = subprocess.run([sys.executable, "-c", script], text=True, capture_output=True, check=False, timeout=120)
    assert "ResumeError" in ended.stderr
    assert "make room and run the same command again" in ended.stderr
    (folder,) = (tmp_path / "full" / "small").glob("translate-*")
    assert [p.name for p in folder.iterdir()] == []
    api.rank(str(config))
    assert _shards(tmp_path / "full" / "small", "translate", "rank") == _shards(whole, "translate", "rank")


def _translations(count: int, seed: int = 5) -> list[Translation]:
    """Rows of one language with every kind of fault, several turns an item."""
    rng = random.Random(seed)
    rows = []
    for i in range(count):
        names = rng.sample(["copied_source", "loop", "numbers", "short_unchecked"], rng.choice((0, 0, 0, 1, 2)))
        rows.append(
            Translation(
                f"d{i // 4}#{i % 4}",
                f"d{i // 4}",
                i % 4,
                rng.choice((*LINE, " \u2003")),
                rng.choice((*LINE, "", "\x1c")),
                "en",
                "pt",
                "dummy",
                rng.choice(("ok", "ok", "ok", "passthrough", "empty", "failed")),
                tuple(Flag(name, None, "") for name in names),
            )
        )
    return rows


@pytest.mark.parametrize("leave_out", [LEFT_OUT, frozenset({"loop"}), frozenset()])
@pytest.mark.parametrize("higher_is_better", [True, False])
def test_columns_of_a_table_are_those_of_its_rows(leave_out: frozenset[str], higher_is_better: bool) -> None:
    rows = _translations(300)
    scores = np.random.default_rng(1).random(300)
    scores[::7] = math.nan
    cut = np.arange(300) % 5 == 0
    one = ColumnsBuilder(leave_out, higher_is_better=higher_is_better)
    for row, score, truncated in zip(rows, scores, cut, strict=True):
        one.add(row, float(score), truncated=bool(truncated))
    other = ColumnsBuilder(leave_out, higher_is_better=higher_is_better)
    for start, end in ((0, 100), (100, 100), (100, 102), (102, 300)):  # 100 and 102 are inside of an item or at its end
        other.extend(to_table(rows[start:end], Translation), scores[start:end], cut[start:end])
    expected, found = one.build(), other.build()
    assert found.reasons == expected.reasons
    assert found.languages == expected.languages
    for name in ("score", "language", "item", "turn", "length", "left_out", "truncated"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    selection = select(found, [20, 50])
    records = [selection.record(i, row) for i, row in enumerate(rows)]
    assert {r.reason for r in records} >= {"kept", "below_cut", "not_a_number", "failed", "empty"}
    table = _ranked(to_table(rows[40:], Translation), selection, 40)
    assert from_table(table, RankedTranslation) == records[40:]
    assert table.equals(to_table(records[40:], RankedTranslation))


def test_columns_refuse_two_languages_in_one_table() -> None:
    rows = _translations(2)
    mixed = to_table([rows[0], Translation("a", "a", 0, "x", "y", "en", "fr", "dummy")], Translation)
    with pytest.raises(ValueError, match="one language at a time"):
        ColumnsBuilder().extend(mixed, np.zeros(2), np.zeros(2, bool))


def test_scores_that_are_not_numbers_rank_last_and_equal_ones_are_said(
    small_run: Small, caplog: pytest.LogCaptureFixture
) -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    stage = api.rank(small_run(rank={"estimator": "test_scale:Odd", "k": [100, 50], "leave_out": []})).stages[0]
    rows = [row for row in api.rows(stage) if row.rank is not None]
    unknown = [row for row in rows if row.score is None]
    assert {row.reason for row in unknown} == {"not_a_number"}
    for language in ("pt", "es"):
        ranks = {r.rank: r.score for r in rows if r.translation.language == language}
        assert [rank for rank in sorted(ranks) if ranks[rank] is None] == [*range(len(ranks) - 23, len(ranks) + 1)]
    for funnel in stage.summary()["funnels"]:
        steps = {step["reason"]: step["n"] for step in funnel["steps"]}
        assert steps["not_a_number"] == 24
        assert funnel["constant"]
    assert "rows have no score; they rank last" in caplog.text
    assert "pt: all 36 scores equal 0.5" in caplog.text
    assert [(f["k"], f["language"]) for f in stage.summary()["funnels"]] == [
        (100.0, "pt"),
        (100.0, "es"),
        (50.0, "pt"),
        (50.0, "es"),
    ]


def test_strict_refuses_equal_and_missing_scores(
    small_run: Small, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    values = small_run(rank={"estimator": "test_scale:Odd", "leave_out": []})
    with pytest.raises(DataError, match=r"pt: all scores are equal.*pt: 24 of 60 rows have no score.*--strict"):
        api.rank(values, strict=True)
    caplog.clear()
    api.rank(values)  # finished above: said again
    assert "es: all scores are equal, so that the ranking is the input order" in caplog.text
    api.rank(small_run(), strict=True)
    config = _yaml(values, tmp_path / "odd.yaml")
    here = str(Path(__file__).parent)
    for verb in ("rank", "run"):
        strict = _command(verb, config, None, "--strict", PYTHONPATH=here)
        said = strict.communicate(timeout=120)[1]
        assert strict.returncode == DataError.exit_code, said
        assert "rows have no score" in said
        assert "Traceback" not in said
    assert not list(Path(values["runs"]).glob("small/train-*"))  # `run` stops before it trains
    lax = _command("rank", config, PYTHONPATH=here)
    assert "WARNING" in lax.communicate(timeout=120)[1]
    assert lax.returncode == 0


def test_every_machine_keeps_its_own_caches(small_run: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's locks do not hold over a network: workers on other machines than the driver's write files of their own."""
    values = small_run(translate={"routes": {"pt": "dummy"}, "back": True})
    values["parse"] = {"parser": "dummy"}
    values["rank"] = {"estimator": "graph_back", "options": {"parser": "dummy"}}
    run = mdialeval.pipeline.run_shards

    def elsewhere(stage: Stage, count: int, factory: Any, record: type, **more: Any) -> None:
        with monkeypatch.context() as patched:
            patched.setattr("socket.gethostname", lambda: "other")
            estimate._estimator.cache_clear()
            run(stage, count, factory, record, **more)

    for verb in (translate, parse, estimate):
        monkeypatch.setattr(verb, "run_shards", elsewhere)
    api.parse(values)
    api.rank(values)
    assert sorted(path.name for path in (tmp_path / "runs").glob("*.sqlite")) == [
        "parse-other.sqlite",
        "translate-other.sqlite",
    ]


def _corpus(path: Path, ids: Sequence[str]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(json.dumps({"id": i, "language": "en", "turns": list(LINE)}) for i in ids))
    return path


def test_two_files_of_one_name_are_two_inputs_and_their_order_counts(small_run: Small, tmp_path: Path) -> None:
    one, other = _corpus(tmp_path / "a" / "d.jsonl", ["x", "y"]), _corpus(tmp_path / "b" / "d.jsonl", ["z"])
    runs = [
        api.translate(small_run(corpus={"path": [str(path) for path in paths]})).run
        for paths in ((one, other), (other, one))
    ]
    read = Run(runs[0]).finished("read")
    assert sorted([d.id for d in stage.read(Dialogue)] for stage in read) == [["x", "y", "z"], ["z", "x", "y"]]
    assert all(set(stage.inputs) == {"1 d.jsonl", "2 d.jsonl"} for stage in read)


def test_two_corpora_with_one_id_are_refused(small_run: Small, tmp_path: Path) -> None:
    paths = [_corpus(tmp_path / name / "d.jsonl", ["x", name]) for name in ("a", "b")]
    with pytest.raises(DataError, match=r"the id 'x' in en, and so has item 1 of .*a/d\.jsonl"):
        api.translate(small_run(corpus={"path": [str(path) for path in paths]}))


def test_more_than_a_hundred_thousand_shards_stay_in_order(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "demo", 1, {})
    for index in (100_000, 99_999, 7):
        stage.write(index, [Dialogue(f"d{index}", "en", ())], Dialogue)
    (tmp_path / f".{stage.shard(3).name}.1.tmp").write_bytes(b"half")
    assert [d.id for d in stage.read(Dialogue)] == ["d7", "d99999", "d100000"]
    stage.finish({})
    assert list(stage.manifest()["files"]) == ["part-00007.parquet", "part-99999.parquet", "part-100000.parquet"]
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
def test_the_whole_line_under_two_launched_ranks(small_run: Small, tmp_path: Path) -> None:
    values = small_run()
    config = _yaml({**values, "runs": str(tmp_path / "ranks")}, tmp_path / "c.yaml")
    options = "--cpu --num_processes 2 --num_machines 1 --mixed_precision no --dynamo_backend no --main_process_port 0"
    verb = ["-m", "mdialeval", "run", str(config), "--quiet"]
    launched = subprocess.run(
        [sys.executable, "-m", "accelerate.commands.launch", *options.split(), *verb],
        text=True,
        capture_output=True,
        check=False,
        timeout=600,
    )
    assert launched.returncode == 0, launched.stderr
    run = tmp_path / "ranks" / "small"
    assert (run / "report.html").stat().st_size > 10_000
    alone = api.run(values).run
    assert sorted(p.parent.name for p in run.glob("*/manifest.json")) == sorted(
        p.parent.name for p in alone.glob("*/manifest.json")
    )
    verbs = ("read", "translate", "rank")
    assert _shards(run, *verbs) == _shards(alone, *verbs)
