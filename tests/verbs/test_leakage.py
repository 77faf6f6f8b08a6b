"""Dialogues in training and test: refused with the overlap listed, dropped, or allowed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mdialeval import api
from mdialeval.errors import DataError

Small = Callable[..., dict[str, Any]]


@pytest.fixture
def leaking(small_run: Small, tmp_path: Path) -> dict[str, Any]:
    """A run whose rated set holds the context of one training dialogue, in another language."""
    config = small_run()
    first = json.loads(Path(config["corpus"]["path"]).read_text(encoding="utf-8").splitlines()[0])
    rows = [
        {
            "id": f"x{i}",
            "language": "fr",
            "context": first["turns"],
            "response": f"Oui {i}",
            "ratings": {"sensibleness": i % 2},
            "group": first["id"],
        }
        for i in range(6)
    ]
    path = tmp_path / "leaking.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    config["score"]["sets"] = [{"name": "leaking", "path": str(path)}]
    return config


def test_overlap_is_refused_and_listed(leaking: dict[str, Any]) -> None:
    with pytest.raises(
        DataError, match=r"1 of 12 training items occur in leaking.*d0 \(en\) ~ x0 \(fr\).*train\.leakage"
    ):
        api.train(leaking)


def test_overlap_can_be_dropped_or_allowed(leaking: dict[str, Any]) -> None:
    pairs = {}
    for choice in ("drop", "allow"):
        leaking["train"]["leakage"] = choice
        stage = api.train(leaking).stages[0]
        pairs[choice] = stage.summary()["pairs"]
        assert "1 of 12 training items occur in leaking" in stage.summary()["leakage"][0]
    assert pairs["drop"] < pairs["allow"]


def test_sets_are_compared_once(leaking: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    leaking["train"]["leakage"] = "drop"
    first = api.train(leaking).stages[0].summary()["leakage"]
    monkeypatch.setattr("mdialeval.verbs.leakage.find_overlap", None)
    again = api.train({**leaking, "seed": 99}).stages[0].summary()["leakage"]
    assert again == first
