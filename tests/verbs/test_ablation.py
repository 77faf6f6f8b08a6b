"""The ablation: cells, what they share, resuming, figures and tested differences."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mdialeval import api
from mdialeval.agreement.variants import ACCURACY, differences, figure, measures
from mdialeval.errors import ConfigError
from mdialeval.model.features import FrozenFeatures
from mdialeval.records import Example, Turn
from mdialeval.store import Run
from mdialeval.verbs.ablation import describe

Small = Callable[..., dict[str, Any]]
VARIANTS = {"text only": {"use": "none"}, "residual": {"use": "joint"}, "graph only": {"use": "joint", "only": True}}


@pytest.fixture
def config(small_run: Small, tmp_path: Path) -> dict[str, Any]:
    """Three variants with two seeds over a frozen tiny encoder and graphs of the dummy parser."""
    rows = [
        {
            "id": f"c{i}-{kind}",
            "language": "en",
            "context": [f"Where do you live, number {i}?"],
            "response": f"{text} {i}.",
            "ratings": {"sensibleness": float(kind == "positive")},
            "group": f"c{i}",
            "system": kind,
        }
        for i in range(8)
        for kind, text in (("positive", "In the old town"), ("random", "Two dozen plums"), ("adversarial", "I live"))
    ]
    built = tmp_path / "built.jsonl"
    built.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    values = small_run(parse={"parser": "dummy"}, ablation={"variants": VARIANTS, "seeds": [1, 2]})
    values["train"] |= {"trainable_layers": 0, "dimensions": {"sensibleness": {}}, "leakage": "allow"}
    values["train"]["graph"] = {"width": 8, "heads": 2, "layers": 1}
    values["score"]["sets"].append({"name": "built", "path": str(built), "labels": "construction"})
    return values


def test_cells_share_graphs_and_features_and_resume(config: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    of = FrozenFeatures.of

    def counted(self: FrozenFeatures, *given: Any) -> Any:
        before = self.encoded
        found = of(self, *given)
        seen.append(self.encoded - before)
        return found

    monkeypatch.setattr(FrozenFeatures, "of", counted)
    first = api.ablation(config, limit=2)
    assert first.cells == (2, 6)
    assert {row.variant for row in first.results} == {"text only", "residual"}
    assert first.differences == ()  # the third variant has no seed yet
    found = api.ablation(config)
    assert found.cells == (6, 6)
    run = Run(found.folder.parent)
    assert len(run.finished("ablation")) == 6
    assert len(run.finished("parse")) == 3  # corpus and two sets, once for all cells
    assert sum(seen) == len({key for path in (run.folder / "features").iterdir() for key in _keys(path)})
    times = {path: path.stat().st_mtime_ns for path in run.folder.rglob("part-*.parquet")}
    again = api.ablation(config)
    assert (again.results, again.differences) == (found.results, found.differences)
    assert {path: path.stat().st_mtime_ns for path in run.folder.rglob("part-*.parquet")} == times


def test_graphs_beside_likelihoods_are_refused_before_anything_is_parsed(config: dict[str, Any]) -> None:
    config["train"]["dimensions"]["sensibleness"] = {"recipe": {"encoder": "likelihood"}}
    with pytest.raises(ConfigError, match=r"ablation\.variants\.residual: encoder likelihood reads no words"):
        api.ablation(config)
    assert not list(Path(config["runs"]).rglob("parse-*"))


def _keys(path: Path) -> list[bytes]:
    from safetensors.torch import load_file

    return [bytes(key) for key in load_file(path)["keys"].tolist()]


def test_the_table_has_every_measure_with_mean_and_spread(config: dict[str, Any]) -> None:
    found = api.ablation(config)
    measured = {(row.dataset, row.measure) for row in found.results}
    kinds = {f"{kind} {name}" for kind in ("random", "adversarial") for name in ("accuracy", "auc")}
    assert measured == {("built", name) for name in kinds} | {("rated", "sensibleness spearman")}
    for mean in (row for row in found.results if row.seed == -1 and row.value is not None):
        seeds = [
            row.value
            for row in found.results
            if row.seed >= 0 and (row.variant, row.dataset, row.measure) == (mean.variant, mean.dataset, mean.measure)
        ]
        defined = [value for value in seeds if value is not None]
        assert mean.value == pytest.approx(np.mean(defined))
        if len(defined) == 2:
            assert mean.spread == pytest.approx(np.std(defined, ddof=1))
    by_cell = {(row.variant, row.dataset, row.measure): row.value for row in found.results if row.seed == -1}
    for row in found.differences:
        one, other = (by_cell[name, row.dataset, row.measure] for name in (row.variant, "text only"))
        if row.value is not None and row.dataset == "built":
            assert row.value == pytest.approx(one - other)
            assert row.low <= row.value <= row.high
    text = "\n".join(describe(found))
    assert "| graph only |" in text
    assert "6 of 6 cells done" in text
    assert (found.folder / "differences.csv").exists()


def test_features_give_the_scores_of_the_encoder_itself(config: dict[str, Any]) -> None:
    found = api.ablation(config | {"ablation": {"variants": VARIANTS, "seeds": [1]}})
    from mdialeval.model.evaluator import Evaluator
    from mdialeval.records import Prediction

    run = Run(found.folder.parent)
    for stage in run.finished("ablation"):
        evaluator = Evaluator.from_pretrained(stage.folder / "evaluator")
        if evaluator.settings.architecture.graph is None:
            (read,) = [s for s in run.finished("read") if "built.jsonl" in s.inputs]
            kept = [row.score for row in stage.read(Prediction) if row.example_id.startswith("c")]
            assert [p.score for p in evaluator.predict(list(read.read(Example)))] == pytest.approx(kept, abs=1e-5)


def test_mistakes_are_named_before_anything_is_trained(config: dict[str, Any]) -> None:
    def fails(message: str, **changed: Any) -> None:
        with pytest.raises(ConfigError, match=message):
            api.ablation(config | changed)

    fails("name two or more", ablation={"variants": {}})
    fails("baseline 'text only' is none of the variants", ablation={"variants": {"a": {}, "b": {}}})
    wrong = VARIANTS | {"bad": {"fusoin": "gate"}, "worse": {"use": "joint", "width": 7}}
    fails(r"variants\.bad\.fusoin[\s\S]*worse", ablation={"variants": wrong})
    fails("a seed occurs twice", ablation={"variants": VARIANTS, "seeds": [1, 1]})
    fails("compares one dimension", train=config["train"] | {"dimensions": {"a": {}, "b": {}}})
    assert not list(Path(config["runs"]).glob("*/ablation-*"))


def _examples() -> list[Example]:
    return [
        Example(f"{kind}{i}", "en", (), Turn("x"), {"sensibleness": rating}, f"g{i}", kind)
        for i in range(10)
        for kind, rating in (("positive", 1.0), ("random", 0.0), ("adversarial", 0.0))
    ]


def test_accuracy_and_auc_by_hand() -> None:
    chosen = {m.name: m for m in measures("set", _examples(), "sensibleness", "spearman")}
    assert set(chosen) == {f"{kind} {name}" for kind in ("random", "adversarial") for name in (ACCURACY, "auc")}
    scores = {(e.id, "en"): 0.9 if e.system == "positive" else 0.1 for e in _examples()}
    scores |= {(f"adversarial{i}", "en"): 0.95 for i in range(5)}
    assert figure(chosen["random accuracy"], scores).value == 1.0
    assert figure(chosen["adversarial accuracy"], scores).value == pytest.approx((1.0 + 0.5) / 2)
    assert figure(chosen["adversarial auc"], scores).value == pytest.approx(0.5)
    assert figure(chosen["random auc"], dict.fromkeys(scores, 0.5)).value is None


def test_the_scored_dimension_is_the_only_one_where_it_is_rated() -> None:
    rated = [replace(e, ratings={**e.ratings, "overall": 3.0}) for e in _examples()]
    assert {m.name for m in measures("set", rated, "overall", "spearman")} == {"overall spearman"}
    other = {m.name for m in measures("set", rated, "understandability", "spearman")}
    assert {"overall spearman", "random auc"} <= other


def test_differences_against_the_baseline_are_paired_and_corrected() -> None:
    chosen = {m.name: m for m in measures("set", _examples(), "sensibleness", "spearman")}
    good = {(e.id, "en"): 0.9 if e.system == "positive" else 0.1 for e in _examples()}
    bad = {key: 1 - score for key, score in good.items()}
    found = differences(
        chosen["random accuracy"],
        {"base": [bad, bad], "better": [good, good], "half": [good, bad], "same": [bad, bad]},
        "base",
        resamples=200,
    )
    assert [found[name].value for name in ("better", "half", "same")] == pytest.approx([1.0, 0.5, 0.0])
    assert found["better"].p_value == pytest.approx(3 * 2 / 201)
    assert found["same"].p_value == 1.0
    assert (found["same"].low, found["same"].high) == (0.0, 0.0)
