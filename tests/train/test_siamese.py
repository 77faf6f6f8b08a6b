"""Siamese training: paraphrases are found, learn with their pairs, and end up closer to them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from mdialeval.config.train import SiameseConfig, TrainConfig
from mdialeval.errors import DataError
from mdialeval.model.evaluator import Evaluator
from mdialeval.records import Example, TrainingPair, Turn
from mdialeval.train.evaluators import train_evaluator
from mdialeval.train.plan import split_by_group
from mdialeval.train.siamese import drawn_together, find_twins, read_paraphrases

WORDS = ("apple", "river", "stone", "cloud", "tiger", "music", "bread", "chair", "lemon", "snow", "horse", "train")


def some_pairs(languages: tuple[str, ...] = ("en",)) -> list[TrainingPair]:
    """In another language every letter is another one: a translation that looks like nothing seen before."""
    pairs = []
    for g, word in enumerate(WORDS):
        for code in languages:
            for label, said in ((1.0, word), (0.0, WORDS[(g + 5) % 12])):
                name = f"d{g}#1" if label else f"d{g}#1/random-0"
                turns = [Turn(_said(text, code)) for text in (f"I like the {word}.", f"Why the {said}?")]
                source = None if code == "en" or not label else name
                kind = "true_next" if label else "random"
                pairs.append(TrainingPair(name, code, (turns[0],), turns[1], label, kind, f"d{g}", source))
    return pairs


def _said(text: str, code: str) -> str:
    return text if code == "en" else "".join(chr(0xC0 + ord(c) - 97) if c.islower() else c for c in text)


def recipe(encoder: Path, **changes: Any) -> TrainConfig:
    values = {
        "encoder": str(encoder), "batch_size": 8, "epochs": 6, "learning_rate": 1e-3, "head_learning_rate": 3e-3,
        "precision": "fp32", "device": "cpu", "hidden": 16, "dev_share": 0.2, "checks": 1, "dropout": 0.0,
    }  # fmt: skip
    return TrainConfig(**(values | changes))


def distance(folder: Path, pairs: list[TrainingPair]) -> float:
    """Mean difference of the scores of responses and of their paraphrases."""
    evaluator = Evaluator.from_pretrained(folder, device="cpu")
    responses = [[pair.response for pair in pairs], [Turn(_said(pair.response.text, "pt")) for pair in pairs]]
    one, other = (
        evaluator.predict([Example(p.id, "en", p.context, r) for p, r in zip(pairs, said, strict=True)])
        for said in responses
    )
    return sum(abs((a.score or 0.0) - (b.score or 0.0)) for a, b in zip(one, other, strict=True)) / len(pairs)


def test_scores_of_paraphrases_come_closer(tiny_encoder: Path, tmp_path: Path) -> None:
    """Learning from paraphrases helps, and the term that draws them together helps beyond that."""
    pairs, path = some_pairs(), tmp_path / "paraphrases.jsonl"
    rows = [{"text": p.response.text, "paraphrase": _said(p.response.text, "pt")} for p in pairs]
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    learned, distances = split_by_group(pairs, 0.2, 1).train, {}
    for name, section in {
        "none": {},
        "learned": {"use": "file", "path": str(path), "weight": 0.0},
        "drawn": {"use": "file", "path": str(path), "weight": 10.0, "term": "scores"},
    }.items():
        chosen = recipe(tiny_encoder, epochs=15, head_learning_rate=5e-3, siamese=section)
        summary = train_evaluator(pairs, "d", chosen, tmp_path / name, seed=1)
        assert summary.n_paraphrases == (len(learned) if section else 0)
        distances[name] = distance(tmp_path / name, learned)
    assert distances["learned"] < 0.6 * distances["none"]
    assert distances["drawn"] < 0.8 * distances["learned"]
    assert "pairs with a paraphrase" in (tmp_path / "drawn" / "README.md").read_text()


@pytest.mark.parametrize("term", ["scores", "vectors", "both"])
def test_the_term_has_a_gradient_and_vanishes_for_equals(term: Any) -> None:
    outputs = torch.tensor([0.2, 0.7], requires_grad=True), torch.tensor([0.6, 0.7])
    vectors = torch.randn(2, 4, requires_grad=True), torch.randn(2, 4)
    drawn_together(outputs, vectors, term).sum().backward()  # type: ignore[no-untyped-call]
    if term != "vectors":
        assert outputs[0].grad is not None
        assert outputs[0].grad[0] < 0  # up, towards the paraphrase
        assert outputs[0].grad[1] == 0
    if term != "scores":
        assert vectors[0].grad is not None
        assert vectors[0].grad.abs().sum() > 0
    same = drawn_together((outputs[0], outputs[0]), (vectors[0], vectors[0]), term)
    assert torch.allclose(same, torch.zeros(2), atol=1e-6)


def test_twins_are_translations_of_the_same_turn() -> None:
    pairs = some_pairs(("en", "pt", "es"))
    twins = find_twins(pairs, SiameseConfig(use="translations"), "en")
    for pair, twin in zip(pairs, twins, strict=True):
        if pair.label == 0.0:
            assert twin is None  # drawn in each language apart
        else:
            assert twin is not None
            assert (twin.id, twin.group, twin.label) == (pair.id, pair.group, 1.0)
            assert twin.language == {"en": "es", "es": "pt", "pt": "en"}[pair.language]
    perturbed = [dataclasses.replace(p, label=0.0, kind="word_drop") for p in pairs if p.label]
    with pytest.raises(DataError, match="no turn is there in two languages"):
        find_twins(perturbed, SiameseConfig(use="translations"), "en")


def test_twins_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "paraphrases.csv"
    path.write_text("res,para\nWhy the apple?,Apples? Why?\nWhy the river?,why the RIVER\n", encoding="utf-8")
    config = SiameseConfig(use="file", path=path, text="res", paraphrase="para")
    assert list(read_paraphrases(config, "en").values()) == ["Apples? Why?"]  # the other says the same
    pairs = some_pairs()
    twins = find_twins(pairs, config, "en")
    assert {(p.response.text, t.response.text) for p, t in zip(pairs, twins, strict=True) if t} == {
        ("Why the apple?", "Apples? Why?")
    }
    assert all(t.context == p.context for p, t in zip(pairs, twins, strict=True) if t)
    with pytest.raises(
        DataError, match=r"paraphrases.csv:2 \[text\]: no text in this column .* columns here: res, para"
    ):
        find_twins(pairs, SiameseConfig(use="file", path=path), "en")


def test_killed_and_resumed_equals_unbroken(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdialeval.train.loop.CHECKPOINT_SECONDS", 0.0)
    chosen = recipe(tiny_encoder, epochs=1, siamese={"use": "translations"}, dropout=0.1)
    train_evaluator(some_pairs(("en", "pt")), "d", chosen, tmp_path / "whole", seed=1)

    def stop(step: int) -> None:
        if step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_evaluator(some_pairs(("en", "pt")), "d", chosen, tmp_path / "parts", seed=1, on_step=stop)
    train_evaluator(some_pairs(("en", "pt")), "d", chosen, tmp_path / "parts", seed=1)
    name = "evaluator.safetensors"
    assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()


def test_a_frozen_encoder_learns_from_paraphrases_too(tiny_encoder: Path, tmp_path: Path) -> None:
    chosen = recipe(tiny_encoder, trainable_layers=0, epochs=2, siamese={"use": "translations"})
    assert train_evaluator(some_pairs(("en", "pt")), "d", chosen, tmp_path / "e", seed=1).n_paraphrases > 0


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="needs a file of texts and paraphrases"):
        TrainConfig(siamese={"use": "file"})
    with pytest.raises(ValueError, match=r"graph\.only reads none"):
        TrainConfig(siamese={"use": "translations"}, graph={"use": "joint", "only": True})
