"""A run with language adapters: one stage a language, shared by dimensions and seeds; the fallback is said."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mdialeval import api
from mdialeval.errors import ConfigError, DataError
from mdialeval.records import Prediction
from mdialeval.store import Run

Small = Callable[..., dict[str, Any]]
TUNING = {"kind": "madx", "language_model": {"steps": 3, "batch_size": 8, "max_tokens": 24}}


@pytest.fixture
def madx_run(small_run: Small, tmp_path: Path) -> dict[str, Any]:
    config = small_run(translate={"routes": {"es": "dummy"}})
    config["train"]["tuning"] = TUNING
    return config


def test_a_run_learns_and_uses_one_adapter_a_language(madx_run: dict[str, Any], tmp_path: Path) -> None:
    outcome = api.run(madx_run)
    run = Run(outcome.run)
    assert {stage.summary()["language"] for stage in run.finished("language")} == {"en", "es"}
    trained = run.finished("train")
    assert len(trained) == 2
    for stage in trained:
        assert stage.summary()["language_adapters"] == ["en", "es"]
        card = json.loads((stage.folder / "evaluator" / "evaluator.json").read_text())
        assert card["training"]["languages"].keys() == {"en"}
    scored = next(s for s in run.finished("score") if s.summary()["scorer"] == "evaluator")
    assert scored.summary()["language_adapters"] == {"en": {"en": 24}, "pt": {"en": 24}}  # no Portuguese text
    assert {row.detail["language_adapter"] for row in scored.read(Prediction)} == {"en"}
    before = {p: p.stat().st_mtime_ns for p in run.folder.glob("language-*/*")}
    api.train(madx_run | {"seed": 99})
    assert {p: p.stat().st_mtime_ns for p in run.folder.glob("language-*/*")} == before
    assert len(run.finished("train")) == 4


def test_texts_of_other_languages_can_be_named(madx_run: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "portuguese.jsonl"
    lines = [{"id": f"p{i}", "turns": [f"Tudo bem contigo, {i}?", f"Sim, e a ti, {i}?"]} for i in range(12)]
    path.write_text("\n".join(json.dumps(line | {"language": "pt"}) for line in lines), encoding="utf-8")
    texts = [{"path": str(path)}]
    madx_run["train"]["tuning"] = {**TUNING, "language_model": {**TUNING["language_model"], "texts": texts}}  # type: ignore[dict-item]
    outcome = api.score(madx_run)
    assert outcome.stages[0].summary()["language_adapters"] == {"en": {"en": 24}, "pt": {"pt": 24}}


def test_a_language_with_few_texts_has_none_and_it_is_said(
    madx_run: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "few.jsonl"
    path.write_text(json.dumps({"id": "p", "turns": ["Tudo bem?", "Sim."], "language": "pt"}), encoding="utf-8")
    tuning = {**TUNING, "language_model": {**TUNING["language_model"], "texts": [{"path": str(path)}]}}  # type: ignore[dict-item]
    madx_run["train"]["tuning"] = tuning
    with caplog.at_level(logging.WARNING):
        outcome = api.train(madx_run)
    assert "no language adapter for pt: 2 distinct texts" in caplog.text
    assert outcome.stages[0].summary()["language_adapters"] == ["en", "es"]


def test_mistakes_are_named(madx_run: dict[str, Any], tmp_path: Path) -> None:
    madx_run["train"]["languages"] = ["en", "es"]
    with pytest.raises(ConfigError, match="madx learns its task from en alone"):
        api.train(madx_run)
    del madx_run["train"]["languages"]
    path = tmp_path / "short.jsonl"
    path.write_text(json.dumps({"id": "p", "language": "en", "turns": ["Hello.", "Hi."]}), encoding="utf-8")
    madx_run["corpus"] = {"path": str(path)}
    with pytest.raises(DataError, match="there are only 2 distinct texts in it"):
        api.train(madx_run)
