"""Training with the graph branch: it learns, mixes rows with and without graphs, and says how many had one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from mdialeval.config.train import GraphConfig, TrainConfig
from mdialeval.errors import ConfigError
from mdialeval.graphs.turns import PairGraphs
from mdialeval.model.evaluator import Evaluator
from mdialeval.model.saved import read_settings
from mdialeval.records import Example, Graph, TrainingPair, Turn, turn_id
from mdialeval.train.evaluators import train_evaluator

CONTEXT = Graph("", 0, ("chase-01", "dog", "cat"), ((0, "ARG0", 1), (0, "ARG1", 2)))
SAME = Graph("", 0, ("bark-01", "dog"), ((0, "ARG0", 1),))
OTHER = Graph("", 0, ("rain-01", "cloud"), ((0, "ARG0", 1),))


def some_pairs(groups: int = 12) -> list[TrainingPair]:
    """Pairs whose texts say nothing about the label: only the graphs do."""
    context = (Turn("The dog chases the cat."),)
    return [
        TrainingPair(f"{g}-{label:g}", "en", context, Turn(f"Well {g}."), label, "made", f"g{g}")
        for g in range(groups)
        for label in (1.0, 0.0)
    ]


def graphs_for(pairs: list[TrainingPair]) -> dict[tuple[str, str], PairGraphs]:
    return {(p.id, p.language): PairGraphs((CONTEXT,), SAME if p.label else OTHER) for p in pairs}


def config(encoder: Path, **graph: object) -> TrainConfig:
    return TrainConfig(
        encoder=str(encoder),
        batch_size=8,
        epochs=20,
        head_learning_rate=5e-3,
        trainable_layers=0,
        precision="fp32",
        device="cpu",
        hidden=8,
        dev_share=0.25,
        checks=4,
        graph=GraphConfig(**{"use": "joint", "width": 16, "layers": 1, "dropout": 0.0} | graph),
    )


@pytest.mark.parametrize(
    "graph",
    [
        {"only": True},
        {"fusion": "gate", "contrastive": "paper", "use": "separate"},
        {"fusion": "concat", "gate": "none", "contrastive": "infonce"},
        {"fusion": "residual", "dropout": 0.2},
    ],
    ids=["only", "gate", "concat", "residual"],
)
def test_what_only_graphs_tell_is_learned(tiny_encoder: Path, tmp_path: Path, graph: dict[str, object]) -> None:
    pairs = some_pairs()
    summary = train_evaluator(
        pairs, "d", config(tiny_encoder, **graph), tmp_path / "e", seed=1, graphs=graphs_for(pairs)
    )
    assert summary.dev["value"] == 1.0
    n = summary.n_train
    assert summary.graphs == {
        "pairs": n,
        "with_graph": n,
        "turns": 2 * n,
        "turns_with_graph": 2 * n,
        "turns_dropped": 0,
        "cut": 0,
    }
    assert f"{n} of {n} pairs with a graph" in (tmp_path / "e" / "README.md").read_text()
    evaluator = Evaluator.from_pretrained(tmp_path / "e", precision="fp32")
    items = [Example(p.id, "en", p.context, p.response) for p in pairs[:2]]
    turns = {turn_id(e.id, 0): CONTEXT for e in items} | {
        turn_id(e.id, 1): g for e, g in zip(items, (SAME, OTHER), strict=True)
    }
    good, bad = (p.score for p in evaluator.predict(items, graphs=turns))
    assert good is not None
    assert bad is not None
    assert good > bad


def test_rows_without_graphs_train_too(tiny_encoder: Path, tmp_path: Path) -> None:
    pairs = some_pairs()
    some = dict(list(graphs_for(pairs).items())[::2])
    recipe = config(tiny_encoder, fusion="gate", contrastive="infonce")
    summary = train_evaluator(pairs, "d", recipe, tmp_path / "e", seed=1, graphs=some)
    assert 0 < summary.graphs["with_graph"] < summary.graphs["pairs"]
    assert read_settings(tmp_path / "e").training["graphs"] == summary.graphs


def test_graphs_are_asked_for(tiny_encoder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"train\.graph\.use is 'joint'"):
        train_evaluator(some_pairs(), "d", config(tiny_encoder), tmp_path / "e", seed=1)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"use": "joint", "width": 30, "heads": 4}, "no multiple of heads"),
        ({"only": True}, "needs graphs"),
        ({"use": "joint", "only": True, "contrastive": "paper"}, "reads no sentence"),
    ],
)
def test_switches_that_contradict_each_other(values: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        GraphConfig(**values)  # type: ignore[arg-type]
