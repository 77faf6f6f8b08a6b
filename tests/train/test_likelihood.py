"""Evaluators that read a causal language model's likelihoods: their inputs are the scorer's figures, and they learn."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.train.test_train import config, same, some_pairs, weights

from mdialeval.config.train import TrainConfig
from mdialeval.errors import BackendError, ConfigError
from mdialeval.llm.causal import CausalLM
from mdialeval.model import likelihood
from mdialeval.model.batches import bundles, collate
from mdialeval.model.evaluator import Evaluator
from mdialeval.model.likelihood import LikelihoodEncoder, _Tokenizer, load_reader, reader_assets
from mdialeval.model.markup import Markup, encode_pairs
from mdialeval.model.onnx_graph import export_onnx
from mdialeval.model.saved import export
from mdialeval.records import Example, Turn
from mdialeval.train.evaluators import train_evaluator

CONTEXT = (Turn("Do you want tea?"), Turn("I am not sure."))
EXAMPLES = [
    Example("a", "en", CONTEXT, Turn("Then take some coffee.")),
    Example("b", "en", CONTEXT, Turn("Why?")),
    Example("c", "en", (), Turn("Good morning to all of you.")),
    Example("d", "en", CONTEXT[:1], Turn("Yes please.")),
]


def ln(base: Any, before: list[int], ids: list[int]) -> torch.Tensor:
    """ln P of tokens after others, by one ordinary call."""
    with torch.inference_mode():
        logits = base(torch.tensor([[*before, *ids]])).logits[0].log_softmax(-1)
    return logits[len(before) - 1 : -1].gather(1, torch.tensor(ids)[:, None])[:, 0]


@pytest.mark.parametrize("pack", [1, 8])
def test_the_statistics_are_those_of_ordinary_calls(causal: Path, pack: int) -> None:
    base, tokenizer = load_reader(f"likelihood:{causal}")
    rows = encode_pairs(tokenizer, EXAMPLES, Markup(120))
    batch = collate(rows, bundles(rows, range(len(rows)), pack), tokenizer.cls_token_id, 0, "shared")
    found = LikelihoodEncoder(base, in_context=True)(batch)[batch.rows.argsort()]
    assert found.shape == (4, 8)
    start = tokenizer.cls_token_id
    for row, values in zip(rows, found.tolist(), strict=True):
        mark, *response = row.response
        alone, given = (ln(base, [start, *before, mark], response) for before in ((), row.context))
        wanted = [t.item() for p in (alone, given) for t in (p.sum(), p.mean(), p.min())]
        wanted.insert(3, math.log(len(response)))
        assert values == pytest.approx([*wanted, 1 - wanted[4] / wanted[0]], abs=2e-3)


def test_of_a_response_that_is_certain_nothing_is_explained(causal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the scorer has it; a division by almost nothing would give the head millions."""
    base, tokenizer = load_reader(f"likelihood:{causal}")
    rows = encode_pairs(tokenizer, EXAMPLES[:1], Markup(120))
    batch = collate(rows, [[0]], tokenizer.cls_token_id, 0, "shared")
    values = iter([-1e-9, -0.5])
    monkeypatch.setattr(likelihood, "log_probabilities", lambda *_: [torch.tensor([next(values)])])
    assert LikelihoodEncoder(base, in_context=True)(batch)[0, -1] == 0.0


def test_a_dialogue_is_written_as_the_scorer_writes_it() -> None:
    """By a tokenizer that gives a hyphen and a line end a token each, as Gemma's does."""
    causal = CausalLM(None, lambda text: [ord(c) for c in text], (1,), 99)
    (row,) = encode_pairs(_Tokenizer(causal, "likelihood"), EXAMPLES[:1], Markup(120))
    assert "".join(map(chr, (*row.context, *row.response))) == (
        "- Do you want tea?\n- I am not sure.\n- Then take some coffee.\n"
    )


def test_it_learns_is_saved_and_scores_alike_in_every_batch(causal: Path, tmp_path: Path) -> None:
    recipe = config(f"likelihood:{causal}", epochs=2)
    summary = train_evaluator(some_pairs(), "sensibleness", recipe, tmp_path / "e", seed=3)
    assert "encoder.base." not in " ".join(weights(tmp_path / "e"))
    assert "reads likelihoods" in (tmp_path / "e" / "README.md").read_text()
    evaluator = Evaluator.from_pretrained(tmp_path / "e")
    together = [p.score for p in evaluator.predict(EXAMPLES)]
    alone = [p.score for e in EXAMPLES for p in Evaluator.from_pretrained(tmp_path / "e", batch_size=1).predict([e])]
    assert together == pytest.approx(alone, abs=1e-5)
    assert len(set(together)) == 4
    assert summary.steps == 20
    train_evaluator(some_pairs(), "sensibleness", recipe, tmp_path / "again", seed=3)
    assert same(weights(tmp_path / "e"), weights(tmp_path / "again"))


def test_another_model_of_the_same_name_is_refused(causal: Path, tmp_path: Path) -> None:
    recipe = config(f"likelihood:{causal}", epochs=1)
    train_evaluator(some_pairs(), "understandability", recipe, tmp_path / "e", seed=3)
    base, _ = load_reader(f"likelihood:{causal}")
    with torch.no_grad():
        next(base.parameters()).add_(1)
    base.save_pretrained(tmp_path / "other")
    for path in causal.glob("*token*"):
        (tmp_path / "other" / path.name).write_bytes(path.read_bytes())
    with pytest.raises(BackendError, match="holds weights"):
        Evaluator.from_pretrained(tmp_path / "e", encoder=f"likelihood:{tmp_path / 'other'}")


def test_it_is_not_exported(causal: Path, tmp_path: Path) -> None:
    recipe = config(f"likelihood:{causal}", epochs=1)
    train_evaluator(some_pairs(), "understandability", recipe, tmp_path / "e", seed=3)
    with pytest.raises(ConfigError, match="a model of its own"):
        export(tmp_path / "e", tmp_path / "out")
    with pytest.raises(ConfigError, match="a model of its own"):
        export_onnx(tmp_path / "e", tmp_path / "onnx", EXAMPLES)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "onnx").exists()


@pytest.mark.parametrize(
    "other", [{"graph": {"use": "joint"}}, {"tuning": {"kind": "lora"}}, {"siamese": {"use": "translations"}}]
)
def test_what_reads_words_is_refused_beside_it(other: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="reads no words"):
        TrainConfig(encoder="likelihood", **other)
    with pytest.raises(ValueError, match=r"dimensions\.fluency\.recipe.*reads no words"):
        TrainConfig(dimensions={"fluency": {"recipe": {"encoder": "likelihood"}}}, **other)


def test_madx_has_one_encoder() -> None:
    with pytest.raises(ValueError, match="no dimension has an encoder of its own"):
        TrainConfig(tuning={"kind": "madx"}, dimensions={"fluency": {"recipe": {"encoder": "some/other"}}})


def test_assets_name_the_model(causal: Path) -> None:
    (asset,) = reader_assets(f"likelihood:{causal}")
    assert asset.present
    with pytest.raises(ConfigError, match="no such file or folder"):
        reader_assets("likelihood:/no/such/place")
