"""Exported evaluators score as the original does: ONNX through onnxruntime, Hugging Face folders without this package."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from mdialeval.errors import BackendError, ConfigError, DataError, MissingExtraError
from mdialeval.model import equality
from mdialeval.model.adapters import Tuning, inserted_names
from mdialeval.model.encoder import load_base, weights_hash
from mdialeval.model.evaluator import Evaluator
from mdialeval.model.markup import Markup
from mdialeval.model.network import Architecture, EvaluatorNetwork, GraphBranch
from mdialeval.model.onnx_graph import OnnxEvaluator, export_onnx
from mdialeval.model.saved import Settings, save_folder
from mdialeval.model.standalone import export_standalone
from mdialeval.records import Example, Turn
from mdialeval.verbs.export import export

CONTEXTS: tuple[tuple[str, ...], ...] = (
    ("Do you want tea?", "No.", "Coffee, then? I have just made some."),
    ("Ist der Zug schon weg?",),
    (),
    ("A turn that is far too long for the limit, " * 4, "short"),
)
RESPONSES = ["Yes, please!", "No.", "我用 iPhone", "Der Zug ist weg, leider. " * 3, "ないです", "é", "word " * 40]

VARIANTS: list[tuple[str, dict[str, Any], Markup]] = [
    ("bert", {"layers": "several"}, Markup(64)),
    ("xlm-roberta", {"pooling": "response", "layers": "mix", "hidden": 0}, Markup(48, 2, "letters")),
    ("bert", {"attention": "separate", "pooling": "mean", "loss": "mse"}, Markup(64, 1)),
    ("roberta", {"attention": "joint", "pooling": "start", "layers": "last"}, Markup(96)),
    ("electra", {"attention": "joint", "pooling": "parts", "layers": "mix"}, Markup(40)),
]
NAMES = [f"{kind}-{changes.get('attention', 'shared')}" for kind, changes, _ in VARIANTS]


def items() -> list[Example]:
    found = [
        Example(f"{c}-{r}", "en", tuple(map(Turn, context)), Turn(response))
        for c, context in enumerate(CONTEXTS)
        for r, response in enumerate(RESPONSES)
    ]
    return [*found, Example("blank", "de", (), Turn(" ")), Example("whole", "de", (Turn("x"),), None)]


def saved(encoder: Path, folder: Path, changes: dict[str, Any], markup: Markup) -> Path:
    base, tokenizer = load_base(str(encoder))
    torch.manual_seed(5)
    architecture = Architecture(**{"attention": "shared", "pooling": "parts", "hidden": 8, **changes})
    network = EvaluatorNetwork(base, architecture).eval()
    base_hash = weights_hash(base)
    with torch.no_grad():  # as if training had changed the top layer, the head's statistics and the mixture
        base.encoder.layer[-1].output.dense.weight.add_(0.05)
        network.head.mean.uniform_(-1, 1)
        network.head.spread.uniform_(0.5, 1)
        if network.encoder.mixture is not None:
            network.encoder.mixture.uniform_(-1, 1)
    settings = Settings("sensibleness", str(encoder), base_hash, architecture, markup)
    save_folder(folder, network, tokenizer, settings, {"encoder.base.encoder.layer.1.output.dense.weight"}, "# card\n")
    return folder


def scores(evaluator: Any, examples: Sequence[Example]) -> list[float | None]:
    return [p.score for p in evaluator.predict(examples)]


@pytest.mark.parametrize(
    ("kind", "changes", "markup"),
    [pytest.param(*v, marks=[pytest.mark.slow] if i in (1, 2, 3) else []) for i, v in enumerate(VARIANTS)],
    ids=NAMES,
)
def test_onnx_scores_are_the_originals(
    make_encoder: Callable[..., Path], tmp_path: Path, kind: str, changes: dict[str, Any], markup: Markup
) -> None:
    folder = saved(make_encoder(kind), tmp_path / "e", changes, markup)
    found = export_onnx(folder, tmp_path / "out", items()[:4])
    assert found.rows == 4
    assert found.largest <= 1e-5
    original = Evaluator.from_pretrained(folder, precision="fp32").predict(items(), "onnx")
    for size in (1, 7, 64):
        exported = OnnxEvaluator(tmp_path / "out", size).predict(items())
        assert [dataclasses.replace(p, score=None) for p in exported] == [
            dataclasses.replace(p, score=None) for p in original
        ]
        assert [p.score for p in exported] == pytest.approx([p.score for p in original], abs=1e-5)
    assert len({round(p.score, 5) for p in original if p.score is not None}) > 12
    with pytest.raises(DataError, match="scorer `onnx`"):
        Evaluator.from_pretrained(tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert card.startswith("# card")
    assert f"On 4 rows (en) its scores differ from the original's by at most {found.largest:.1e}" in card
    assert OnnxEvaluator(tmp_path / "out").signature.startswith("scorer:onnx|dimension:sensibleness|")


@pytest.mark.parametrize(("kind", "changes", "markup"), VARIANTS, ids=NAMES)
def test_the_cards_code_scores_without_this_package(
    make_encoder: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    changes: dict[str, Any],
    markup: Markup,
) -> None:
    folder = saved(make_encoder(kind), tmp_path / "e", changes, markup)
    found = export_standalone(folder, tmp_path / "out", items())
    assert found.largest == 0.0
    code = (tmp_path / "out" / "README.md").read_text().split("```python\n")[1].split("```")[0]
    usable = [e for e in items() if e.response is not None and e.response.text.strip()]
    asked = [[[t.text for t in e.context], e.response.text] for e in usable if e.response]
    expected = scores(Evaluator.from_pretrained(folder, precision="fp32"), usable)
    monkeypatch.chdir(tmp_path / "out")
    for name in [name for name in sys.modules if name.partition(".")[0] == "mdialeval"]:
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    names: dict[str, Any] = {}
    exec(code, names)
    assert [names["score"](*each) for each in asked] == pytest.approx(expected, abs=1e-5)


def test_plain_loaders_take_the_folder(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = saved(tiny_encoder, tmp_path / "e", {}, Markup(64))
    found = export(folder, tmp_path / "out", "huggingface")
    model, info = AutoModel.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not [name for name in info["missing_keys"] if not name.startswith("pooler.")]
    original = Evaluator.from_pretrained(folder).network.encoder.base
    assert torch.equal(model.encoder.layer[-1].output.dense.weight, original.encoder.layer[-1].output.dense.weight)
    assert len(AutoTokenizer.from_pretrained(tmp_path / "out")) > 100
    assert len(found.languages) >= 9
    assert found.size > 10_000


def test_what_onnx_cannot_express_is_refused(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = saved(tiny_encoder, tmp_path / "e", {"graph": GraphBranch(width=8, heads=2)}, Markup(64))
    with pytest.raises(ConfigError, match="graph branch"):
        export(folder, tmp_path / "out", "onnx")
    assert not (tmp_path / "out").exists()


def test_a_difference_is_an_error_and_leaves_no_evaluator(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = saved(tiny_encoder, tmp_path / "e", {}, Markup(64))
    honest = OnnxEvaluator.score_rows
    monkeypatch.setattr(OnnxEvaluator, "score_rows", lambda self, rows, graphs: [s + 2e-4 for s in honest(self, rows)])
    with pytest.raises(BackendError, match=r"differ from the original's by up to 0\.0002"):
        export_onnx(folder, tmp_path / "out", items())
    with pytest.raises(DataError, match="no evaluator here"):
        OnnxEvaluator(tmp_path / "out")


def test_mistakes_are_named(tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = saved(tiny_encoder, tmp_path / "e", {}, Markup(64))
    with pytest.raises(ConfigError, match="did you mean 'onnx'"):
        export(folder, tmp_path / "out", "onxx")
    with pytest.raises(ConfigError, match="is the evaluator itself"):
        export(folder, folder, "huggingface")
    with pytest.raises(DataError, match="no evaluator here"):
        export(tmp_path, tmp_path / "out", "huggingface")
    with pytest.raises(DataError, match=r"no model\.onnx here"):
        OnnxEvaluator(folder)
    with pytest.raises(DataError, match="can be scored"):
        export_standalone(folder, tmp_path / "out", items()[-2:])
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r"mdialeval\[onnx\]"):
        export_onnx(folder, tmp_path / "out", items())


def test_a_lost_status_is_an_error() -> None:
    from mdialeval.records import Prediction

    one = Prediction("a", "en", "s", "d", 0.5, "ok")
    with pytest.raises(BackendError, match="status of example 'a'"):
        equality.compare("onnx", [one], [dataclasses.replace(one, score=None, status="failed")])
    with pytest.raises(BackendError, match="differ"):
        equality.compare("onnx", [one], [dataclasses.replace(one, score=float("nan"))])
    assert equality.compare("onnx", [one], [one]) == (1, ("en",), 0.0)


@pytest.mark.parametrize("to", ["huggingface", pytest.param("onnx", marks=pytest.mark.slow)])
def test_lora_is_merged(tiny_encoder: Path, tmp_path: Path, to: str) -> None:
    pytest.importorskip("peft")
    base, tokenizer = load_base(str(tiny_encoder))
    base_hash = weights_hash(base)
    architecture = Architecture(hidden=8, tuning=Tuning("lora", rank=2))
    network = EvaluatorNetwork(base, architecture).eval()
    with torch.no_grad():
        for name, parameter in base.named_parameters():
            if ".lora_B." in name:
                parameter.normal_()
    settings = Settings("d", str(tiny_encoder), base_hash, architecture, Markup(64))
    save_folder(tmp_path / "e", network, tokenizer, settings, inserted_names(network), "# card\n")
    found = export(tmp_path / "e", tmp_path / "out", to)
    assert found.largest <= 1e-5
    assert json.loads((tmp_path / "out" / "evaluator.json").read_text())["architecture"]["tuning"] is None
    assert ("```python" in (tmp_path / "out" / "README.md").read_text()) == (to == "huggingface")


def test_adapters_are_refused_by_onnx_and_named_in_the_plain_card(tiny_encoder: Path, tmp_path: Path) -> None:
    pytest.importorskip("adapters")
    base, tokenizer = load_base(str(tiny_encoder))
    base_hash = weights_hash(base)
    architecture = Architecture(hidden=8, tuning=Tuning("adapter"))
    network = EvaluatorNetwork(base, architecture).eval()
    settings = Settings("d", str(tiny_encoder), base_hash, architecture, Markup(64))
    save_folder(tmp_path / "e", network, tokenizer, settings, inserted_names(network), "# card\n")
    with pytest.raises(ConfigError, match="adapters cannot go to ONNX"):
        export(tmp_path / "e", tmp_path / "out", "onnx")
    assert export(tmp_path / "e", tmp_path / "plain", "huggingface").largest <= 1e-6
    assert "which mdialeval alone puts in" in (tmp_path / "plain" / "README.md").read_text()
