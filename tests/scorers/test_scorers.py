"""Scorers: one contract for all, and no silent number."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from mdialeval.errors import ConfigError, DataError
from mdialeval.model.encoder import load_base, weights_hash
from mdialeval.model.markup import Markup
from mdialeval.model.network import Architecture, EvaluatorNetwork
from mdialeval.model.onnx_graph import export_onnx
from mdialeval.model.saved import Settings, save_folder
from mdialeval.records import SCORED, Example, Turn
from mdialeval.registry import create, resolve
from mdialeval.scorers.protocol import SCORERS

TEXTS = [
    "Yes, please.",
    "No.",
    "我不是，你好吗",
    "今日は寒いですね。",
    "😂😂",
    "مرحبا بك",
    "word " * 300,
    "",
    "   ",
    "Why?",
]


def examples() -> list[Example]:
    context = (Turn("Do you want tea?"), Turn("I am not sure."))
    made = [Example(f"e{i}", "en", context, Turn(t)) for i, t in enumerate(TEXTS)]
    return [*made, Example("dialogue", "de", context, None), Example("alone", "pt", (), Turn("Sozinho aqui."))]


@pytest.fixture(scope="module")
def options(
    make_encoder: Callable[..., Path], causal: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """Options of every scorer of the table; a new entry has to be added here."""
    encoder = make_encoder("bert")
    folder = tmp_path_factory.mktemp("scorers")
    for name, attention in (("sensibleness", "shared"), ("understandability", "separate")):
        base, tokenizer = load_base(str(encoder))
        torch.manual_seed(2)
        architecture = Architecture(attention, "parts" if name == "sensibleness" else "response", hidden=8)  # type: ignore[arg-type]
        network = EvaluatorNetwork(base, architecture)
        settings = Settings(name, str(encoder), weights_hash(base), architecture, Markup(64))
        save_folder(folder / name, network, tokenizer, settings, set(), "# card")
    one = Example("one", "en", (Turn("Hello."),), Turn("Hi."))
    export_onnx(folder / "sensibleness", folder / "onnx", [one])
    lines = ["id,score", *(f"e{i},{i / 7}" for i in range(len(TEXTS)))]
    (folder / "scores.csv").write_text("\n".join(lines) + "\n")
    return {
        "evaluator": {"folder": [str(folder / "sensibleness"), str(folder / "understandability")]},
        "onnx": {"folder": str(folder / "onnx")},
        "cosine": {"encoder": str(encoder), "max_tokens": 64},
        "length": {},
        "dummy": {},
        "given": {"path": str(folder / "scores.csv")},
        "mlm": {"encoder": str(encoder)},
        "likelihood": {"model": str(causal)},
        "llm": {"backend": "dummy"},
    }


@pytest.mark.parametrize("name", SCORERS)
def test_contract(name: str, options: dict[str, dict[str, Any]]) -> None:
    scorer = create("scorer", SCORERS, name, options[name])
    items = examples()
    found = scorer.score(items)
    assert [(p.example_id, p.language, p.dimension) for p in found] == [
        (e.id, e.language, d) for e in items for d in scorer.dimensions
    ]
    for p in found:
        assert (p.score is not None) == (p.status in SCORED)
        assert p.score is None or math.isfinite(p.score)
        assert p.scorer == scorer.name
    by_id = {p.example_id: p.status for p in found}
    if name != "given":
        assert by_id["dialogue"] == "unsupported"
        assert by_id["e7"] == by_id["e8"] == "empty"
    assert scorer.score([]) == []
    assert scorer.score(items) == found
    halves = [*scorer.score(items[:7]), *scorer.score(items[7:])]
    for a, b in zip(found, halves, strict=True):
        assert (a.status, a.detail) == (b.status, b.detail)
        assert a.score == pytest.approx(b.score, abs=1e-6)
    assert "mdialeval:" in scorer.signature
    assert "\n" not in scorer.signature


@pytest.mark.parametrize("name", SCORERS)
def test_batch_size_changes_nothing(name: str, options: dict[str, dict[str, Any]]) -> None:
    import inspect

    if "batch_size" not in inspect.signature(resolve("scorer", SCORERS, name)).parameters:
        pytest.skip("no batches")
    one, seven = (create("scorer", SCORERS, name, {**options[name], "batch_size": n}) for n in (1, 7))
    for a, b in zip(one.score(examples()), seven.score(examples()), strict=True):
        assert a.score == (None if b.score is None else pytest.approx(b.score, abs=1e-6, rel=1e-6))


def test_assets_name_what_is_missing(options: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    from mdialeval.registry import assets

    assert all(a.present for a in assets("scorer", SCORERS, "evaluator", options["evaluator"]))
    missing = assets("scorer", SCORERS, "evaluator", {"folder": str(tmp_path / "none")})
    assert [a.present for a in missing] == [False]
    assert "mdialeval train" in missing[0].fix
    assert [a.present for a in assets("scorer", SCORERS, "given", {"path": str(tmp_path / "x.csv")})] == [False]


def test_two_evaluators_of_one_dimension_are_refused(options: dict[str, dict[str, Any]]) -> None:
    folder = options["evaluator"]["folder"][0]
    with pytest.raises(ConfigError, match="two folders measure sensibleness"):
        create("scorer", SCORERS, "evaluator", {"folder": [folder, folder]})


def test_given_joins_by_id_and_language(tmp_path: Path) -> None:
    path = tmp_path / "s.tsv"
    path.write_text("id\tlanguage\tscore\ne0\ten\t0.5\ne0\tzh_CN\t0.25\ne1\ten\t\n", encoding="utf-8-sig")
    scorer = create("scorer", SCORERS, "given", {"path": str(path)})
    items = [Example("e0", "zh", (), Turn("a")), Example("e0", "en", (), Turn("a")), Example("e1", "en", (), Turn("b"))]
    found = scorer.score([*items, Example("e9", "en", (), Turn("c"))])
    assert [p.score for p in found] == [0.25, 0.5, None, None]
    assert [p.status for p in found] == ["ok", "ok", "failed", "failed"]
    assert [p.detail.get("reason") for p in found[2:]] == ["no score", "no row"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,skore\na,1\n", r"s\.csv:\d: no column 'score': did you mean 'skore'"),
        ("id,score\na,1\na,2\n", r"s\.csv:3.*'a' occurs twice"),
        ("id,score\na,high\n", r"s\.csv:2.*'high' is not a number"),
    ],
)
def test_given_names_the_row(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "s.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        create("scorer", SCORERS, "given", {"path": str(tmp_path / "s.csv")})


def test_length_directions() -> None:
    items = [Example("a", "en", (), Turn("a b")), Example("b", "en", (), Turn("abcd"))]
    longer, shorter = (create("scorer", SCORERS, "length", {"direction": d}) for d in ("longer", "shorter"))
    assert [p.score for p in longer.score(items)] == [2.0, 4.0]
    assert [p.score for p in shorter.score(items)] == [-2.0, -4.0]
    with pytest.raises(ConfigError, match="use longer or shorter"):
        create("scorer", SCORERS, "length", {"direction": "up"})


def test_cosine_of_a_repeated_context_is_one(options: dict[str, dict[str, Any]]) -> None:
    scorer = create("scorer", SCORERS, "cosine", options["cosine"])
    same = Example("a", "en", (Turn("Do you want tea?"),), Turn("Do you want tea?"))
    other = Example("b", "en", (Turn("Do you want tea?"),), Turn("ZQX 9"))
    values = [p.score for p in scorer.score([same, other])]
    assert values[0] == pytest.approx(1.0, abs=1e-6)
    assert values[1] < 0.99


def test_mlm_is_the_mean_over_tokens(options: dict[str, dict[str, Any]]) -> None:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    scorer = create("scorer", SCORERS, "mlm", {**options["mlm"], "with_context": False})
    found = scorer.score([Example("a", "en", (Turn("Hi."),), Turn("tea now"))])[0]
    tokenizer = AutoTokenizer.from_pretrained(options["mlm"]["encoder"])
    model = AutoModelForMaskedLM.from_pretrained(options["mlm"]["encoder"]).eval()
    tokens = tokenizer("tea now", add_special_tokens=False)["input_ids"]
    ids = [tokenizer.cls_token_id, *tokens, tokenizer.sep_token_id]
    values = []
    for place in range(1, len(ids) - 1):
        masked = torch.tensor([[*ids[:place], tokenizer.mask_token_id, *ids[place + 1 :]]])
        values.append(model(masked).logits[0, place].log_softmax(0)[ids[place]].item())
    assert found.score == pytest.approx(sum(values) / len(values), abs=1e-5)


def test_mlm_refuses_an_encoder_without_its_head(options: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    AutoModel.from_pretrained(options["mlm"]["encoder"]).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(options["mlm"]["encoder"]).save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match="no masked-language-model head"):
        create("scorer", SCORERS, "mlm", {"encoder": str(tmp_path)})
