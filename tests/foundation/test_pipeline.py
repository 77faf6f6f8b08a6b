"""The shard loop: resumes to the same bytes, by ranks, on Ray, and counts failures."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from mdialeval.config.run import ExecutionConfig
from mdialeval.errors import BackendError, ResumeError
from mdialeval.pipeline import Shard, run_shards
from mdialeval.records import Dialogue, Turn
from mdialeval.store import Run, Stage, load_stage


def _make(index: int, failures: int = 0) -> Shard:
    return Shard([Dialogue(f"d{index}-{i}", "en", (Turn("Hi"),)) for i in range(3)], failures)


def _factory(failures: int = 0) -> Callable[[int], Shard]:
    return functools.partial(_make, failures=failures)


def _stage(folder: Path) -> Stage:
    return Run(folder).stage("demo", 1, {"a": 1}, {"corpus": "x"})


def _bytes(stage: Stage) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(stage.folder.iterdir()) if p.name != "timing.json"}


def _whole(folder: Path) -> dict[str, bytes]:
    stage = _stage(folder)
    run_shards(stage, 5, _factory, Dialogue, execution=ExecutionConfig())
    stage.finish({"rows": 15})
    return _bytes(stage)


def test_missing_shards_are_made_and_present_ones_kept(tmp_path: Path) -> None:
    whole = _whole(tmp_path / "whole")
    stage = _stage(tmp_path / "part")
    run_shards(stage, 2, _factory, Dialogue, execution=ExecutionConfig())
    before = stage.shard(0).stat().st_mtime_ns
    run_shards(stage, 5, _factory, Dialogue, execution=ExecutionConfig())
    stage.finish({"rows": 15})
    assert stage.shard(0).stat().st_mtime_ns == before
    assert _bytes(stage) == whole


def test_ray_leaves_the_same_bytes(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray")
    whole = _whole(tmp_path / "whole")
    stage = _stage(tmp_path / "ray")
    try:
        run_shards(stage, 5, _factory, Dialogue, execution=ExecutionConfig(engine="ray", workers=2))
    finally:
        ray.shutdown()
    stage.finish({"rows": 15})
    assert _bytes(stage) == whole


SCRIPT = """
    import sys, time, functools
    from pathlib import Path
    from mdialeval.config.run import ExecutionConfig
    from mdialeval.pipeline import Shard, run_shards, is_main_rank
    from mdialeval.records import Dialogue, Turn
    from mdialeval.store import Run

    def make(index):
        time.sleep(float(sys.argv[2]))
        return Shard([Dialogue(f"d{index}-{i}", "en", (Turn("Hi"),)) for i in range(3)])

    stage = Run(Path(sys.argv[1])).stage("demo", 1, {"a": 1}, {"corpus": "x"})
    run_shards(stage, 5, lambda: make, Dialogue, execution=ExecutionConfig())
    if is_main_rank():
        stage.finish({"rows": 15})
"""


def _start(folder: Path, pause: float, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(folder), str(pause)], env={**os.environ, **environment}
    )


def test_two_ranks_leave_the_same_bytes(tmp_path: Path) -> None:
    ranks = [_start(tmp_path / "ranks", 0.01, RANK=str(rank), WORLD_SIZE="2") for rank in range(2)]
    assert [rank.wait(60) for rank in ranks] == [0, 0]
    assert _bytes(_stage(tmp_path / "ranks")) == _whole(tmp_path / "whole")


def test_killed_and_started_again_leaves_the_same_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    process = _start(folder, 0.3)
    stage = _stage(folder)
    while len(stage.shards()) < 2:
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not stage.done
    with pytest.raises(ResumeError, match="holds no finished stage"):
        load_stage(stage.folder)
    assert _start(folder, 0).wait(60) == 0
    assert _bytes(stage) == _whole(tmp_path / "whole")


def test_too_many_failures_stop_the_verb_and_keep_finished_shards(tmp_path: Path) -> None:
    stage = _stage(tmp_path)
    with pytest.raises(BackendError, match=r"3 rows failed, more than execution\.max_failures=2"):
        run_shards(stage, 5, functools.partial(_factory, 1), Dialogue, execution=ExecutionConfig(max_failures=2))
    assert len(stage.shards()) == 2
    assert not stage.done


def test_other_settings_get_another_folder_and_edits_are_noticed(tmp_path: Path) -> None:
    run = Run(tmp_path)
    one, two = run.stage("demo", 1, {"a": 1}), run.stage("demo", 1, {"a": 2})
    assert one.folder != two.folder
    one.finish({})
    manifest = one.folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"a": 1', '"a": 3'))
    with pytest.raises(ResumeError, match="changed by hand"):
        load_stage(one.folder)
