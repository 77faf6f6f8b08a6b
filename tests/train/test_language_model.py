"""Language adapters: they learn, go on where they were killed, and a MAD-X run keeps and uses one a language."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM

from mdialeval.config.train import TrainConfig
from mdialeval.errors import DataError
from mdialeval.model.encoder import load_base
from mdialeval.train.language_model import ADAPTER, LanguageSummary, MaskedModel, train_language_adapter


def texts(n: int = 120) -> list[str]:
    """Words of which each calls for the next one, so that a masked character can be told from its neighbours."""
    rng = random.Random(0)
    return [f"{w} {w} {w} number {i}" for i in range(n) for w in [rng.choice(["aba", "cdc", "efe", "ghg"])]]


def recipe(encoder: Path, **changes: Any) -> TrainConfig:
    language_model = {"steps": 60, "batch_size": 16, "max_tokens": 24, "learning_rate": 5e-3, **changes}
    return TrainConfig(
        encoder=str(encoder), precision="fp32", device="cpu", tuning={"kind": "madx", "language_model": language_model}
    )


def test_it_learns_more_than_frequencies(tiny_encoder: Path, tmp_path: Path) -> None:
    found = train_language_adapter(texts(400), "pt", recipe(tiny_encoder, steps=200), tmp_path / "a")
    assert isinstance(found, LanguageSummary)
    assert (found.language, found.n_texts + found.n_held_out) == ("pt", 400)
    assert found.own_head  # the tiny encoder is saved with one
    assert found.loss < 0.8 * found.unigram_loss
    stored = load_file(tmp_path / "a" / ADAPTER)
    assert all(".language-pt." in name for name in stored)
    assert any("invertible" in name and value.abs().sum() > 0 for name, value in stored.items())
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == [ADAPTER]


def test_killed_and_resumed_equals_unbroken(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdialeval.train.language_model.CHECKPOINT_SECONDS", 0.0)
    chosen = recipe(tiny_encoder, steps=20)
    whole = train_language_adapter(texts(), "pt", chosen, tmp_path / "whole")

    def stop(step: int) -> None:
        if step == 9:  # in the second epoch
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_language_adapter(texts(), "pt", chosen, tmp_path / "parts", stop)
    steps: list[int] = []
    parts = train_language_adapter(texts(), "pt", chosen, tmp_path / "parts", steps.append)
    assert steps[0] == 10
    assert parts[:-1] == whole[:-1]
    assert (tmp_path / "whole" / ADAPTER).read_bytes() == (tmp_path / "parts" / ADAPTER).read_bytes()


def test_the_base_encoder_stays_as_it_is(tiny_encoder: Path, tmp_path: Path) -> None:
    one = train_language_adapter(texts(), "pt", recipe(tiny_encoder, steps=3), tmp_path / "a")
    other = train_language_adapter(texts(), "es", recipe(tiny_encoder, steps=3), tmp_path / "b")
    first, second = load_file(tmp_path / "a" / ADAPTER), load_file(tmp_path / "b" / ADAPTER)
    assert {k.replace("-pt", "-es") for k in first} == set(second)
    assert one.vocabulary == other.vocabulary
    assert not all(torch.equal(v, second[k.replace("-pt", "-es")]) for k, v in first.items())


def test_too_little_text_is_refused(tiny_encoder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="1 distinct texts in pt: an adapter needs"):
        train_language_adapter(["Olá.", " Olá. "], "pt", recipe(tiny_encoder), tmp_path / "a")


def test_texts_without_tokens_and_a_single_token_are_no_trouble(tiny_encoder: Path, tmp_path: Path) -> None:
    found = train_language_adapter([*texts(30), "a", "  "], "pt", recipe(tiny_encoder, steps=2), tmp_path / "a")
    assert found.n_texts + found.n_held_out == 31


@pytest.mark.parametrize("kind", ["bert", "xlm-roberta"])
def test_the_checkpoints_own_head_is_taken(make_encoder: Callable[..., Path], tmp_path: Path, kind: str) -> None:
    """With it the untrained model predicts what the checkpoint does."""
    where = make_encoder(kind)
    base, _ = load_base(str(where))
    base.get_invertible_adapter = lambda: None
    model = MaskedModel(base, torch.arange(20)).eval()
    assert model.take_head(str(where), range(20))
    ids = torch.tensor([[0, 9, 4, 12, 2]])
    with torch.inference_mode():
        found = model(ids, torch.ones_like(ids), ids == 4)
        expected = AutoModelForMaskedLM.from_pretrained(where).eval()(ids).logits[0, 2, :20]
    assert torch.allclose(found[0], expected, atol=1e-5)


def test_an_encoder_without_a_head_learns_a_fresh_one(make_encoder: Callable[..., Path], tmp_path: Path) -> None:
    base, tokenizer = load_base(str(make_encoder("bert", seed=3)))
    base.save_pretrained(tmp_path / "bare")
    tokenizer.save_pretrained(tmp_path / "bare")
    found = train_language_adapter(texts(), "pt", recipe(tmp_path / "bare", steps=2), tmp_path / "a")
    assert not found.own_head
