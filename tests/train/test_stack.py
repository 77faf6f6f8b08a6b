"""A language model read beside an evaluator: weights from held-out pairs, saved, scored alike, refused elsewhere."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.train.test_likelihood import EXAMPLES
from tests.train.test_train import config, some_pairs, weights

from mdialeval.config.train import TrainConfig
from mdialeval.errors import BackendError, ConfigError, DataError
from mdialeval.model import stack as stack_module
from mdialeval.model.evaluator import Evaluator
from mdialeval.model.features import FrozenFeatures
from mdialeval.model.markup import Markup
from mdialeval.model.onnx_graph import export_onnx
from mdialeval.model.saved import SETTINGS, export, read_settings
from mdialeval.model.stack import Reader, inputs_of
from mdialeval.model.standalone import export_standalone
from mdialeval.scorers.evaluator import EvaluatorScorer
from mdialeval.train.evaluators import train_evaluator
from mdialeval.train.plan import split_by_group
from mdialeval.train.stack import Weighed, _warnings, cross_validated, fit, stack_evaluator


@pytest.fixture(scope="module")
def stacked(tiny_encoder: Path, causal: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Weighed]:
    """An evaluator, the same with a language model beside it, and what was learned."""
    folder = tmp_path_factory.mktemp("stacked")
    recipe = config(tiny_encoder, epochs=1, dev_share=0.4)
    train_evaluator(some_pairs(), "sensibleness", recipe, folder / "plain", seed=3)
    told = recipe.model_copy(update={"likelihood": str(causal)})
    features = FrozenFeatures(folder / "features")
    found = stack_evaluator(folder / "plain", folder / "more", some_pairs(), told, 3, features=features)
    return folder / "plain", folder / "more", found


def test_the_regression_is_the_optimum_of_its_loss() -> None:
    """Any step away from the weights makes the penalised loss larger; a useless input gets next to nothing."""
    rng = np.random.default_rng(1)
    inputs = rng.normal(3, 2, (300, 3))
    labels = (inputs[:, 0] - 3 + rng.normal(0, 1, 300) > 0).astype(float)
    counts = np.ones(300)
    mean, spread, learned, bias = fit(inputs, labels, counts)
    standard = (inputs - inputs.mean(0)) / inputs.std(0)
    assert np.allclose(mean, inputs.mean(0)) and np.allclose(spread, inputs.std(0))

    def loss(w: np.ndarray, b: float) -> float:
        outputs = standard @ w + b
        return float((np.log1p(np.exp(-outputs * (2 * labels - 1)))).sum() + (w**2).sum() / 2)

    best = loss(learned, bias)
    for i in range(3):
        step = np.eye(3)[i] * 0.02
        assert loss(learned + step, bias) > best < loss(learned - step, bias)
    assert loss(learned, bias + 0.02) > best < loss(learned, bias - 0.02)
    assert learned[0] > 1 > 10 * abs(learned[1])


def test_labels_that_a_row_divides_perfectly_stay_finite() -> None:
    inputs = np.array([[-5.0], [-4.0], [4.0], [5.0]])
    _, _, learned, bias = fit(inputs, np.array([0.0, 0.0, 1.0, 1.0]), np.ones(4))
    assert np.isfinite(learned).all() and np.isfinite(bias) and learned[0] > 0
    with pytest.raises(BackendError, match="not finite"):
        fit(np.array([[np.nan], [1.0]]), np.array([0.0, 1.0]), np.ones(2))


def test_cross_validation_leaves_a_pairs_own_group_out() -> None:
    """Labels that are random by group cannot be known from other groups."""
    rng = np.random.default_rng(2)
    groups = [f"g{i // 4}" for i in range(80)]
    labels = np.repeat(rng.integers(0, 2, 20), 4).astype(float)
    inputs = np.eye(20)[[i // 4 for i in range(80)]]  # each group is known by its own input
    outputs = cross_validated(inputs, labels, np.ones(80), groups)
    assert np.corrcoef(outputs, labels)[0, 1] < 0.1
    _, _, learned, _ = fit(inputs, labels, np.ones(80))
    assert np.corrcoef(inputs @ learned, labels)[0, 1] > 0.9


def test_it_is_learned_on_held_out_pairs_and_scores_as_they_say(
    stacked: tuple[Path, Path, Weighed], causal: Path
) -> None:
    plain, more, found = stacked
    held = split_by_group(some_pairs(), 0.4, 3).dev
    assert found.pairs == len(held) and len(found.weights) == 9
    stack = read_settings(more).stack
    assert stack is not None and stack.model == str(causal) and stack.in_context
    assert np.allclose(stack.weights, found.weights, atol=1e-4)
    own = Evaluator.from_pretrained(plain).predict(EXAMPLES)
    both = Evaluator.from_pretrained(more).predict(EXAMPLES)
    figures = Reader(str(causal), True, "cpu").figures(EXAMPLES, read_settings(more).markup)
    wanted = stack.scores(inputs_of([p.score or 0.0 for p in own], "bce", figures))
    assert [p.score for p in both] == pytest.approx(list(wanted), abs=1e-6)
    assert [p.detail["without_likelihood"] for p in both] == pytest.approx([p.score for p in own])
    assert [p.detail["log_likelihood"] for p in both] == pytest.approx(figures.values[:, 0].tolist(), abs=1e-2)
    assert all(0 < p.score < 1 for p in both if p.score is not None)
    assert weights(plain).keys() == weights(more).keys()
    card = (more / "README.md").read_text()
    assert "| likelihoods | also reads" in card and f"on {found.pairs} held-out pairs" in card
    assert "also reads" not in (plain / "README.md").read_text()


def test_rows_without_words_keep_their_status_and_cut_ones_say_so(stacked: tuple[Path, Path, Weighed]) -> None:
    _, more, _ = stacked
    evaluator = Evaluator.from_pretrained(more)
    empty = dataclasses.replace(EXAMPLES[0], id="x", response=dataclasses.replace(EXAMPLES[0].response, text=" "))
    long = dataclasses.replace(EXAMPLES[0], id="y", response=dataclasses.replace(EXAMPLES[0].response, text="so " * 99))
    first, second, third = evaluator.predict([empty, long, EXAMPLES[0]])
    assert (first.status, first.score) == ("empty", None)
    assert second.status == "truncated" and second.score is not None
    assert third.status == "ok"
    assert [p.status for p in evaluator.predict([empty])] == ["empty"]
    assert evaluator.score([], "Good morning.") == pytest.approx(
        evaluator.predict([dataclasses.replace(EXAMPLES[2], response=type(EXAMPLES[2].response)("Good morning."))])[
            0
        ].score
    )


def test_the_signature_tells_both_apart(stacked: tuple[Path, Path, Weighed]) -> None:
    plain, more, _ = stacked
    one, other = (EvaluatorScorer(folder).signature for folder in (plain, more))
    assert one != other and "|likelihood:" in other and "|stack:" in other and "likelihood" not in one
    assert [a.kind for a in EvaluatorScorer.assets(more)].count("model") == 3  # evaluator, encoder, language model


def test_what_the_model_said_is_read_once_for_all(
    stacked: tuple[Path, Path, Weighed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, more, _ = stacked
    first = EvaluatorScorer(more, likelihood_cache=tmp_path).score(EXAMPLES)
    assert list(tmp_path.glob("*.safetensors"))
    monkeypatch.setattr("mdialeval.model.likelihood.log_probabilities", lambda *_: pytest.fail("read again"))
    assert EvaluatorScorer(more, likelihood_cache=tmp_path).score(EXAMPLES) == first


def test_a_model_set_up_otherwise_is_another_one(causal: Path, tmp_path: Path) -> None:
    """The same weights read with another start token or constant say something else: no figure is taken from the cache."""
    kept = FrozenFeatures(tmp_path / "features")
    first = Reader(str(causal), True, "cpu", kept)
    figures = first.figures(EXAMPLES, Markup(96)).values
    other = tmp_path / "other"
    shutil.copytree(causal, other)
    values = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(values | {"rms_norm_eps": 0.5}))
    second = Reader(str(other), True, "cpu", kept)
    assert second.hash != first.hash
    assert not torch.allclose(second.figures(EXAMPLES, Markup(96)).values, figures)
    shutil.copytree(causal, tmp_path / "same")
    assert Reader(str(tmp_path / "same"), True, "cpu", kept).hash == first.hash


def test_a_model_with_a_small_window_sees_less_and_says_so(causal: Path, tmp_path: Path) -> None:
    shutil.copytree(causal, tmp_path / "m")
    values = json.loads((causal / "config.json").read_text())
    (tmp_path / "m" / "config.json").write_text(json.dumps(values | {"max_position_embeddings": 40}))
    found = Reader(str(tmp_path / "m"), True, "cpu").figures(EXAMPLES, Markup(96))
    assert found.n_turns_dropped[0] > 0 and torch.isfinite(found.values).all()


def test_a_moved_model_is_named(stacked: tuple[Path, Path, Weighed], causal: Path, tmp_path: Path) -> None:
    _, more, _ = stacked
    moved = tmp_path / "evaluator"
    shutil.copytree(more, moved)
    values = json.loads((moved / SETTINGS).read_text())
    values["stack"]["model"] = str(tmp_path / "gone")
    (moved / SETTINGS).write_text(json.dumps(values))
    with pytest.raises(BackendError, match="as the option likelihood"):
        EvaluatorScorer(moved).score(EXAMPLES)
    assert [a.present for a in EvaluatorScorer.assets(moved)] == [True, True, False]
    shutil.copytree(causal, tmp_path / "here")
    there = {"likelihood": str(tmp_path / "here")}
    assert all(asset.present for asset in EvaluatorScorer.assets(moved, **there))
    assert EvaluatorScorer(moved, **there).score(EXAMPLES) == EvaluatorScorer(more).score(EXAMPLES)


def test_several_dimensions_share_one_model(
    stacked: tuple[Path, Path, Weighed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, more, _ = stacked
    shutil.copytree(more, tmp_path / "other")
    values = json.loads((more / SETTINGS).read_text())
    (tmp_path / "other" / SETTINGS).write_text(json.dumps(values | {"dimension": "fluency"}))
    loaded: list[str] = []
    real = stack_module.load_reader
    monkeypatch.setattr(stack_module, "load_reader", lambda name: loaded.append(name) or real(name))
    assert len(EvaluatorScorer([more, tmp_path / "other"]).score(EXAMPLES)) == 2 * len(EXAMPLES)
    assert len(loaded) == 1


def test_held_out_pairs_of_one_class_or_group_say_so(
    stacked: tuple[Path, Path, Weighed], tiny_encoder: Path, causal: Path, tmp_path: Path
) -> None:
    plain, _, _ = stacked
    recipe = config(tiny_encoder, likelihood=str(causal), dev_share=0.05)
    found = stack_evaluator(plain, tmp_path / "one", some_pairs(), recipe, 3)
    assert found.together is None and "one held-out dialogue group" in found.warnings[0]
    assert "undefined" in (tmp_path / "one" / "README.md").read_text()
    held = {p.group for p in split_by_group(some_pairs(), 0.05, 3).dev}
    pairs = [dataclasses.replace(p, label=1.0) if p.group in held else p for p in some_pairs()]
    with pytest.raises(DataError, match=r"of one class.*raise train\.dev_share"):
        stack_evaluator(plain, tmp_path / "two", pairs, recipe, 3)
    assert not (tmp_path / "two").exists()


def test_a_model_that_does_not_help_is_warned_of() -> None:
    assert "told apart worse" in _warnings(0.8, 0.7, 1.0)[0]
    assert "counts -0.50" in _warnings(0.7, 0.8, -0.5)[0]
    assert not _warnings(0.7, 0.8, 1.0)


def test_another_model_in_its_place_is_refused(stacked: tuple[Path, Path, Weighed], tmp_path: Path) -> None:
    plain, more, _ = stacked
    values = json.loads((more / SETTINGS).read_text())
    values["stack"]["model_hash"] = "0" * 16
    for path in plain.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / SETTINGS).write_text(json.dumps(values))
    with pytest.raises(BackendError, match="name the right one as the option likelihood, or train again"):
        Evaluator.from_pretrained(tmp_path).predict(EXAMPLES)


def test_it_is_not_exported(stacked: tuple[Path, Path, Weighed], tmp_path: Path) -> None:
    _, more, _ = stacked
    for way in (export, lambda f, t: export_onnx(f, t, EXAMPLES), lambda f, t: export_standalone(f, t, EXAMPLES)):
        with pytest.raises(ConfigError, match="also reads the language model"):
            way(more, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_regression_is_weighed_too(tiny_encoder: Path, causal: Path, tmp_path: Path) -> None:
    recipe = config(tiny_encoder, epochs=1, dev_share=0.4, loss="mse")
    train_evaluator(some_pairs(), "sensibleness", recipe, tmp_path / "plain", seed=3)
    told = recipe.model_copy(update={"likelihood": str(causal)})
    stack_evaluator(tmp_path / "plain", tmp_path / "more", some_pairs(), told, 3)
    scores = [p.score for p in Evaluator.from_pretrained(tmp_path / "more").predict(EXAMPLES)]
    assert all(score is not None and 0 < score < 1 for score in scores)


def test_beside_likelihoods_alone_it_is_refused_and_without_a_model_nothing_changes() -> None:
    with pytest.raises(ValueError, match="reads likelihoods already"):
        TrainConfig(encoder="likelihood", likelihood="embedded")
    assert "likelihood" not in TrainConfig().content()
    assert TrainConfig(likelihood="embedded").content()["likelihood"] == "embedded"
