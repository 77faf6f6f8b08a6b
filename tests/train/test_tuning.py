"""LoRA and adapters: only they and the head learn and are saved, and saved, loaded, resumed gives the same numbers."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from mdialeval.config.train import TrainConfig
from mdialeval.errors import ConfigError, DataError, MissingExtraError
from mdialeval.model.adapters import Tuning, equip, inserted_names, language_weights
from mdialeval.model.encoder import load_base
from mdialeval.model.evaluator import Evaluator
from mdialeval.model.network import Architecture, EvaluatorNetwork
from mdialeval.model.saved import export
from mdialeval.records import Example, Prediction, TrainingPair, Turn
from mdialeval.train.evaluators import train_evaluator

WORDS = ("apple", "river", "stone", "cloud", "tiger", "music", "bread", "chair", "lemon", "snow", "horse", "train")


def some_pairs() -> list[TrainingPair]:
    """The good response repeats the context's word; two responses share each context, so that they are packed."""
    pairs = []
    for g, word in enumerate(WORDS):
        context = (Turn("Tell me more."), Turn(f"I like the {word}."))
        for label, said in ((1.0, word), (0.0, WORDS[(g + 5) % 12])):
            pairs.append(
                TrainingPair(f"{g}-{label:g}", "en", context, Turn(f"Why the {said}?"), label, "made", f"g{g}")
            )
    return pairs


def recipe(encoder: Path, **tuning: Any) -> TrainConfig:
    return TrainConfig(
        encoder=str(encoder), batch_size=4, epochs=2, head_learning_rate=3e-3, precision="fp32", device="cpu",
        hidden=16, dev_share=0.2, checks=2, tuning={"learning_rate": 5e-3, **tuning},
    )  # fmt: skip


def scores(folder: Path, languages: tuple[str, ...] = ("en",)) -> list[Prediction]:
    examples = [Example(p.id, code, p.context, p.response) for p in some_pairs()[:6] for code in languages]
    return Evaluator.from_pretrained(folder, device="cpu").predict(examples)


def values(rows: list[Prediction]) -> list[float]:
    return [row.score for row in rows if row.score is not None]


@pytest.fixture
def languages(tiny_encoder: Path, tmp_path: Path) -> dict[str, Path]:
    """Two language adapters that differ: random weights in place of learned ones."""
    found = {}
    for place, code in enumerate(("en", "pt")):
        base, _ = load_base(str(tiny_encoder))
        equip(base, Tuning("madx", languages=(code,), home=code))
        generator = torch.Generator().manual_seed(place)
        made = {k: 0.3 * torch.randn(v.shape, generator=generator) for k, v in language_weights(base, code).items()}
        found[code] = tmp_path / f"{code}.safetensors"
        save_file(made, found[code])
    return found


def given(kind: str, languages: dict[str, Path]) -> dict[str, Any]:
    return {"languages": languages} if kind == "madx" else {}


@pytest.mark.parametrize("kind", ["lora", "adapter", "madx"])
def test_only_the_inserted_weights_and_the_head_learn_and_are_saved(
    tiny_encoder: Path, tmp_path: Path, languages: dict[str, Path], kind: str
) -> None:
    before, _ = load_base(str(tiny_encoder))
    train_evaluator(
        some_pairs(), "d", recipe(tiny_encoder, kind=kind), tmp_path / "e", seed=1, **given(kind, languages)
    )
    stored = load_file(tmp_path / "e" / "evaluator.safetensors")
    inside = [name for name in stored if name.startswith("encoder.base.")]
    assert inside
    assert all(".lora_" in name if kind == "lora" else "adapters." in name for name in inside)
    network = Evaluator.from_pretrained(tmp_path / "e", device="cpu").network
    after = {k.replace(".base_layer.", "."): v for k, v in network.encoder.base.state_dict().items()}
    assert all(torch.equal(value, after[name]) for name, value in before.state_dict().items())
    learned = [name for name in inside if ".lora_B." in name or "task.adapter_up" in name]
    assert learned
    assert all(stored[name].abs().sum() > 0 for name in learned)  # they start at zero


@pytest.mark.parametrize("kind", ["lora", "adapter", "madx"])
def test_inserted_weights_start_as_the_identity(tiny_encoder: Path, kind: str) -> None:
    """Through packed pairs: a three-dimensional mask and given positions."""
    plain, tokenizer = load_base(str(tiny_encoder))
    tuned, _ = load_base(str(tiny_encoder))
    pairs = [Example(p.id, "en", p.context, p.response) for p in some_pairs()]
    tuning = Tuning(kind, languages=("en",) if kind == "madx" else ())  # type: ignore[arg-type]
    torch.manual_seed(0)
    one = EvaluatorNetwork(plain, Architecture(hidden=0))
    torch.manual_seed(0)
    other = EvaluatorNetwork(tuned, Architecture(hidden=0, tuning=tuning))
    other.head.load_state_dict(one.head.state_dict())
    assert inserted_names(other)
    settings = _settings(tiny_encoder)
    expected = Evaluator(one, tokenizer, settings, device="cpu").predict(pairs)
    found = Evaluator(other, tokenizer, settings, device="cpu").predict(pairs)
    assert values(found) == pytest.approx(values(expected), abs=1e-6)


def _settings(encoder: Path) -> Any:
    from mdialeval.model.saved import Settings

    return Settings("d", str(encoder), "")


@pytest.mark.parametrize("kind", ["lora", "adapter", "madx"])
def test_killed_and_resumed_equals_unbroken(
    tiny_encoder: Path, tmp_path: Path, languages: dict[str, Path], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("mdialeval.train.loop.CHECKPOINT_SECONDS", 0.0)
    chosen = recipe(tiny_encoder, kind=kind, dropout=0.1)
    train_evaluator(some_pairs(), "d", chosen, tmp_path / "whole", seed=1, **given(kind, languages))

    def stop(step: int) -> None:
        if step == 5:
            raise KeyboardInterrupt

    arguments = {"seed": 1, **given(kind, languages)}
    with pytest.raises(KeyboardInterrupt):
        train_evaluator(some_pairs(), "d", chosen, tmp_path / "parts", on_step=stop, **arguments)
    train_evaluator(some_pairs(), "d", chosen, tmp_path / "parts", **arguments)
    for path in (tmp_path / "whole").iterdir():
        assert path.read_bytes() == (tmp_path / "parts" / path.name).read_bytes(), path.name


@pytest.mark.parametrize("kind", ["lora", "adapter", "madx"])
def test_an_exported_folder_scores_alike_without_its_base(
    make_encoder: Callable[..., Path], tmp_path: Path, languages: dict[str, Path], tiny_encoder: Path, kind: str
) -> None:
    train_evaluator(
        some_pairs(), "d", recipe(tiny_encoder, kind=kind), tmp_path / "e", seed=1, **given(kind, languages)
    )
    export(tmp_path / "e", tmp_path / "alone")
    from transformers import AutoModel

    _, info = AutoModel.from_pretrained(tmp_path / "alone", output_loading_info=True)
    assert not info["unexpected_keys"]
    tolerance = 1e-5 if kind == "lora" else 0.0  # LoRA is added to the weights it changes
    assert values(scores(tmp_path / "alone")) == pytest.approx(values(scores(tmp_path / "e")), abs=tolerance)


def test_an_example_is_read_through_the_adapter_of_its_language(
    tiny_encoder: Path, tmp_path: Path, languages: dict[str, Path]
) -> None:
    train_evaluator(some_pairs(), "d", recipe(tiny_encoder, kind="madx"), tmp_path / "e", seed=1, languages=languages)
    together = scores(tmp_path / "e", ("en", "pt-BR", "ja"))
    english, portuguese, japanese = together[0::3], together[1::3], together[2::3]
    assert {row.detail["language_adapter"] for row in portuguese} == {"pt"}
    assert {row.detail["language_adapter"] for row in (*english, *japanese)} == {"en"}
    assert [row.language for row in portuguese] == ["pt-BR"] * 6
    assert values(japanese) == values(english)
    assert all(abs(a - b) > 1e-6 for a, b in zip(values(portuguese), values(english), strict=True))
    assert values(scores(tmp_path / "e", ("pt",))) == pytest.approx(values(portuguese), abs=1e-6)


def test_lora_leaves_lower_layers_alone(tiny_encoder: Path, tmp_path: Path) -> None:
    chosen = recipe(tiny_encoder, kind="lora", targets=["all-linear"]).model_copy(update={"trainable_layers": 1})
    train_evaluator(some_pairs(), "d", chosen, tmp_path / "e", seed=1)
    stored = [k for k in load_file(tmp_path / "e" / "evaluator.safetensors") if "lora" in k]
    assert len(stored) == 2 * 6
    assert all(".layer.1." in name for name in stored)


@pytest.mark.parametrize(("kind", "package"), [("lora", "peft"), ("adapter", "adapters")])
def test_a_missing_package_gives_the_pip_line(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, package: str
) -> None:
    honest = importlib.import_module

    def without(name: str, *rest: Any) -> Any:
        if name == package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return honest(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(MissingExtraError, match=r'pip install "mdialeval\[madx\]"'):
        train_evaluator(some_pairs(), "d", recipe(tiny_encoder, kind=kind), tmp_path / "e", seed=1)


def test_mistakes_are_named(tiny_encoder: Path, tmp_path: Path, languages: dict[str, Path]) -> None:
    with pytest.raises(ConfigError, match=r"tuning\.targets.*nowhere"):
        train_evaluator(
            some_pairs(), "d", recipe(tiny_encoder, kind="lora", targets=["nowhere"]), tmp_path / "a", seed=1
        )
    with pytest.raises(ConfigError, match="needs a language adapter of 'en'"):
        train_evaluator(
            some_pairs(), "d", recipe(tiny_encoder, kind="madx"), tmp_path / "b", seed=1,
            languages={"pt": languages["pt"]},
        )  # fmt: skip
    with pytest.raises(ValueError, match="trainable_layers: 0 freezes the encoder"):
        TrainConfig(trainable_layers=0, tuning={"kind": "lora"})
    narrow = recipe(tiny_encoder, kind="madx", language_model={"reduction": 4})
    with pytest.raises(DataError, match="made for another encoder or width"):
        train_evaluator(some_pairs(), "d", narrow, tmp_path / "c", seed=1, languages=languages)


def test_an_evaluator_without_its_inserted_weights_is_refused(tiny_encoder: Path, tmp_path: Path) -> None:
    train_evaluator(some_pairs(), "d", recipe(tiny_encoder, kind="lora"), tmp_path / "e", seed=1)
    path = tmp_path / "e" / "evaluator.safetensors"
    save_file({k: v for k, v in load_file(path).items() if "lora_B" not in k}, path)
    with pytest.raises(DataError, match=r"lora_B.*differs"):
        Evaluator.from_pretrained(tmp_path / "e")


@pytest.mark.parametrize("encoder", ["xlm-roberta", "deberta-v2"])
@pytest.mark.parametrize("kind", ["lora", "adapter"])
def test_other_encoders_are_tuned_too(
    make_encoder: Callable[..., Path], tmp_path: Path, encoder: str, kind: str
) -> None:
    """Positions that start elsewhere (RoBERTa), and none that can be given (DeBERTa: joint attention)."""
    chosen = recipe(make_encoder(encoder), kind=kind).model_copy(update={"epochs": 1, "checks": 1})
    train_evaluator(some_pairs(), "d", chosen, tmp_path / "e", seed=1)
    assert len(set(values(scores(tmp_path / "e")))) > 1
