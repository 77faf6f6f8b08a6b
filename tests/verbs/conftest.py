"""A whole run in miniature: a dozen dialogues, the dummy engine and estimator, a tiny encoder, a small rated set."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mdialeval.cli import main

LINES = (
    "Are you coming to the market with me today?",
    "Yes, but only after I finish the dishes.",
    "Good, then we can buy the plums for the cake.",
    "How many plums does the cake need?",
    "About two dozen, and some sugar on top.",
)


@pytest.fixture
def command_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    """A function that calls ``mdialeval`` with some arguments: exit code and everything printed."""

    def call(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["mdialeval", *arguments])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return call


@pytest.fixture
def small_run(tmp_path: Path, tiny_encoder: Path) -> Callable[..., dict[str, Any]]:
    """A function that gives the configuration of a small run as a mapping."""
    corpus = tmp_path / "dialogues.jsonl"
    corpus.write_text(
        "\n".join(
            json.dumps({"id": f"d{i}", "language": "en", "turns": [f"{line} It is number {i}." for line in LINES]})
            for i in range(12)
        ),
        encoding="utf-8",
    )
    rated = tmp_path / "rated.jsonl"
    rows = [
        {
            "id": f"e{i}",
            "language": language,
            "context": [LINES[0]],
            "response": LINES[1 + i % 4],
            "ratings": {"sensibleness": float(i % 3)},
            "group": f"g{i // 2}",
        }
        for language in ("en", "pt")
        for i in range(12)
    ]
    rated.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")

    def values(**changed: Any) -> dict[str, Any]:
        base: dict[str, Any] = {
            "run": "small",
            "runs": str(tmp_path / "runs"),
            "corpus": {"path": str(corpus)},
            "translate": {"routes": {"pt": "dummy", "es": "dummy"}},
            "rank": {"estimator": "dummy", "k": 60},
            "train": {
                "encoder": str(tiny_encoder),
                "dimensions": {"sensibleness": {}, "understandability": {"top_k": 50}},
                "dev_share": 0.25,
                "max_tokens": 64,
                "checks": 2,
            },
            "score": {
                "sets": [{"name": "rated", "path": str(rated), "labels": "construction"}],
                "scorers": [{"scorer": "length"}, {"scorer": "dummy"}],
            },
            "correlate": {"resamples": 20},
            "execution": {"shard_size": 5},
        }
        return {**base, **changed}

    return values
