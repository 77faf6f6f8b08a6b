"""The whole line: from a corpus to a report, again from what is there, and after being killed anywhere."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from mdialeval import api
from mdialeval.errors import ConfigError, DataError
from mdialeval.records import Agreement, Prediction, RankedTranslation, Translation
from mdialeval.store import Run

Small = Callable[..., dict[str, Any]]


def _bytes(folder: Path) -> dict[str, bytes]:
    """Every file of a run but the clock's, by relative name."""
    return {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.name != "timing.json" and not p.name.endswith(".log.jsonl")
    }


def test_the_whole_line_and_what_its_stages_say(small_run: Small) -> None:
    config = small_run()
    outcome = api.run(config)
    assert outcome.report is not None
    page = outcome.report.read_text(encoding="utf-8")
    assert "by construction" in page
    run = Run(outcome.run)
    (translated,) = run.finished("translate")
    rows = list(translated.read(Translation))
    assert len(rows) == 12 * 5 * 2
    assert translated.summary()["rows"] == 120
    (ranked,) = run.finished("rank")
    kept = [row for row in ranked.read(RankedTranslation) if row.kept]
    assert {row.translation.language for row in kept} == {"pt", "es"}
    for language in ("pt", "es"):
        (funnel,) = [f for f in ranked.summary()["funnels"] if f["language"] == language]
        assert sum(row.translation.language == language for row in kept) == funnel["n_out"]
        assert sum(step["n"] for step in funnel["steps"]) == funnel["n_in"] == 60
    trained = {stage.summary()["dimension"]: stage for stage in run.finished("train")}
    assert set(trained) == {"sensibleness", "understandability"}
    predictions = [p for stage in run.finished("score") for p in stage.read(Prediction)]
    assert len(predictions) == 24 * 4
    assert all(stage.summary()["signature"] for stage in run.finished("score"))
    (correlated,) = run.finished("correlate")
    agreements = list(correlated.read(Agreement))
    assert {a.scorer for a in agreements} == {"evaluator", "length", "dummy"}
    assert {a.language for a in agreements} == {"en", "pt", "mean"}
    assert all(a.n_scored <= a.n for a in agreements)


def test_a_second_run_does_nothing_again(small_run: Small) -> None:
    config = small_run()
    first = api.run(config)
    times = {p: p.stat().st_mtime_ns for p in first.run.rglob("*.parquet")}
    started = time.monotonic()
    api.run(config)
    assert {p: p.stat().st_mtime_ns for p in first.run.rglob("*.parquet")} == times
    assert time.monotonic() - started < 30


def test_other_settings_make_other_stages_and_share_the_rest(small_run: Small) -> None:
    api.rank(small_run())
    outcome = api.rank(small_run(rank={"estimator": "dummy", "k": 20}))
    run = Run(outcome.run)
    assert len(run.finished("translate")) == 1
    assert len(run.finished("rank")) == 2


def test_turns_keep_their_number_and_their_place(small_run: Small) -> None:
    stage = api.translate(small_run()).stages[0]
    for row in stage.read(Translation):
        assert row.id == f"{row.item_id}#{row.turn}"
    assert [r.turn for r in stage.read(Translation)] == [0, 1, 2, 3, 4] * 24


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".tsv", ".parquet"])
def test_every_export_has_every_row(small_run: Small, tmp_path: Path, ending: str) -> None:
    outcome = api.rank(small_run())
    assert api.export(outcome, tmp_path / f"kept{ending}") == 120


def test_a_run_without_what_a_verb_needs_says_so(small_run: Small) -> None:
    with pytest.raises(ConfigError, match=r"translate\.routes"):
        api.translate(small_run(translate={}))
    with pytest.raises(ConfigError, match=r"score\.sets"):
        api.score(small_run(score={}))
    with pytest.raises(ConfigError, match="corpus"):
        api.rank(small_run(corpus=None))


def test_a_missing_corpus_names_the_path(small_run: Small) -> None:
    with pytest.raises(DataError, match=r"nowhere\.jsonl"):
        api.translate(small_run(corpus={"path": "nowhere.jsonl"}))


def _start(path: Path) -> subprocess.Popen[bytes]:
    code = "from mdialeval.cli import main; main()"
    command = [sys.executable, "-c", code, "run", str(path), "--quiet"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})


def _kill_when(process: subprocess.Popen[bytes], ready: Callable[[], bool]) -> bool:
    """SIGKILL as soon as something is there; False where the run ended before."""
    while process.poll() is None:
        if ready():
            process.send_signal(signal.SIGKILL)
            process.wait()
            return True
        time.sleep(0.005)
    return False


@pytest.mark.slow
def test_killed_at_every_stage_the_bytes_are_those_of_an_unbroken_run(small_run: Small, tmp_path: Path) -> None:
    whole, broken = small_run(runs=str(tmp_path / "whole")), small_run(runs=str(tmp_path / "broken"))
    paths = {}
    for name, values in (("whole", whole), ("broken", broken)):
        paths[name] = tmp_path / f"{name}.yaml"
        with paths[name].open("w", encoding="utf-8") as stream:
            YAML().dump(json.loads(json.dumps(values)), stream)
    assert _start(paths["whole"]).wait(300) == 0
    folder = tmp_path / "broken" / "small"
    milestones = ["read-*/part-00001*", "translate-*/part-00002*", "estimate-*/part-00001*", "rank-*/part-00001*"]
    milestones += ["train-*/evaluator", "train-*/manifest.json", "score-*/part-00000*", "correlate-*"]
    killed = [_kill_when(_start(paths["broken"]), lambda m=m: any(folder.glob(m))) for m in milestones]
    assert sum(killed) >= 6
    assert _start(paths["broken"]).wait(300) == 0
    assert _bytes(folder) == _bytes(tmp_path / "whole" / "small")


def test_a_run_takes_the_paraphrases_of_its_translations(small_run: Small) -> None:
    config = small_run(translate={"routes": {"pt": "dummy"}})
    config["train"]["siamese"] = {"use": "translations"}
    outcome = api.train(config)
    assert all(stage.summary()["paraphrases"] > 0 for stage in Run(outcome.run).finished("train"))
