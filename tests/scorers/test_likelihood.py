"""The likelihood scorer: its sums are the model's own, whatever is read once and whatever is batched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoTokenizer

from mdialeval import api
from mdialeval.errors import BackendError, ConfigError, MissingExtraError
from mdialeval.llm import causal as module
from mdialeval.llm.causal import causal_assets, identity, load_causal, log_probabilities
from mdialeval.llm.gemma import embedded_model_asset
from mdialeval.records import Example, Turn
from mdialeval.registry import Asset
from mdialeval.scorers.likelihood import Likelihood

CONTEXT = (Turn("Do you want tea?"), Turn("I am not sure."))


def plain(folder: Path, before: list[int], text: list[int]) -> float:
    """ln P of a text after a prefix, by one ordinary call."""
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    ids = torch.tensor([[*before, *text]])
    with torch.inference_mode():
        logits = model(ids).logits[0].log_softmax(-1)
    return sum(float(logits[len(before) + i - 1, token]) for i, token in enumerate(text))


def test_texts_after_a_prefix_read_once_equal_ordinary_calls(causal: Path) -> None:
    loaded = load_causal(str(causal), "cpu")
    texts = [[7], [8, 9, 10], [11] * 30, [12, 13]]
    for batch_size in (1, 3):
        found = log_probabilities(loaded.model, [0, 5, 6], texts, batch_size)
        assert [len(values) for values in found] == [len(text) for text in texts]
        for values, text in zip(found, texts, strict=True):
            assert float(values.sum()) == pytest.approx(plain(causal, [0, 5, 6], text), abs=1e-4)


TINY = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
WIDE = {**TINY, "num_key_value_heads": 1, "intermediate_size": 32}


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("gpt2", {}),
        ("gemma3_text", {**WIDE, "head_dim": 8, "sliding_window": 4}),  # every layer; prefix and texts are longer
        ("mistral", {**WIDE, "sliding_window": 4}),
        ("gptj", {"rotary_dim": 4}),  # takes the option logits_to_keep and does not heed it
        ("bloom", {}),  # refuses it
        ("opt", {"ffn_dim": 32, "word_embed_proj_dim": 16}),
    ],
)
def test_every_kind_of_decoder_equals_ordinary_calls(kind: str, settings: dict[str, Any]) -> None:
    torch.manual_seed(5)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **{**TINY, **settings})).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(8 if weight.dim() > 1 else 1)
    before, texts = [3, 1, 4, 1, 5, 9, 2, 6], [[7], [8, 9, 10, 11, 12, 13, 14], [5, 5, 5]]
    found = log_probabilities(model, before, texts, 3)
    for values, text in zip(found, texts, strict=True):
        with torch.inference_mode():
            logits = model(torch.tensor([[*before, *text]])).logits[0].log_softmax(-1)
        wanted = [float(logits[len(before) + i - 1, token]) for i, token in enumerate(text)]
        assert values.tolist() == pytest.approx(wanted, abs=1e-4)


def test_what_is_no_decoder_is_refused(causal: Path, tmp_path: Path) -> None:
    encoder = AutoModelForCausalLM.from_config(AutoConfig.for_model("bert", **TINY, intermediate_size=32)).eval()
    with pytest.raises(BackendError, match="does not read on from a prefix"):
        log_probabilities(encoder, [1, 2], [[3]], 1)
    AutoModel.from_pretrained(causal).save_pretrained(tmp_path)  # without its head, which would be drawn at random
    AutoTokenizer.from_pretrained(causal).save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match=r"no language-model head \(lm_head.weight\)"):
        load_causal(str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(BackendError, match="name a checkpoint folder"):
        load_causal(str(tmp_path))


def test_both_scores_are_what_they_are_defined_as(causal: Path) -> None:
    scorer = Likelihood(str(causal), device="cpu")
    example = Example("e", "en", CONTEXT, Turn("Yes, please."))
    alone, share = scorer.score([example])
    loaded = load_causal(str(causal), "cpu")
    response = loaded.encode(" Yes, please.\n")
    p_alone = plain(causal, [0, *loaded.encode("-")], response)
    context = [*loaded.encode("- Do you want tea?\n"), *loaded.encode("- I am not sure.\n"), *loaded.encode("-")]
    p_given = plain(causal, [0, *context], response)
    assert alone.score == pytest.approx(p_alone, abs=1e-3) and alone.score < 0
    assert share.score == pytest.approx((p_given - p_alone) / -p_alone, abs=1e-4) and share.score != 0
    (mean,) = Likelihood(str(causal), ["understandability"], normalise="tokens", device="cpu").score([example])
    assert mean.score == pytest.approx(p_alone / len(response), abs=1e-4)


def test_a_score_does_not_depend_on_its_neighbours(causal: Path) -> None:
    examples = [
        Example("a", "en", CONTEXT, Turn("Yes.")),
        Example("b", "en", CONTEXT, Turn("No, and let me tell you at some length why not.")),
        Example("c", "en", CONTEXT, Turn("Yes.")),
        Example("d", "en", CONTEXT[1:], Turn("Why?")),
    ]
    together = [p.score for p in Likelihood(str(causal), device="cpu").score(examples)]
    apart = [p.score for e in examples for p in Likelihood(str(causal), device="cpu", batch_size=1).score([e])]
    assert together == pytest.approx(apart, abs=1e-4)
    assert together[:2] == together[4:6]


def test_old_turns_are_dropped_whole_and_counted_and_a_long_response_is_cut(causal: Path) -> None:
    scorer = Likelihood(str(causal), device="cpu", max_tokens=60)
    many = tuple(Turn(f"Turn number {i} here.") for i in range(8))
    _, share = scorer.score([Example("many", "en", many, Turn("Good."))])
    assert share.status == "ok" and share.detail["n_turns_dropped"] == 6
    long, share = scorer.score([Example("long", "en", many, Turn("word " * 60))])
    assert long.status == "truncated" and int(long.detail["n_tokens"]) < 60
    assert share.status == "empty" and share.score is None  # no room is left for a context
    assert share.detail["n_turns_dropped"] == 8


def test_of_a_newest_turn_that_is_too_long_the_end_is_read(causal: Path) -> None:
    scorer = Likelihood(str(causal), device="cpu", max_tokens=60)
    one, other = (Turn(f"{start} {'so ' * 40}it is") for start in ("Well,", "Oh no"))
    fluency, share = scorer.score([Example("e", "en", (Turn("Hi."), one), Turn("Good."))])
    assert (fluency.status, share.status) == ("ok", "truncated")
    assert share.detail["n_turns_dropped"] == 1 and share.score is not None
    (_, same) = scorer.score([Example("e", "en", (other,), Turn("Good."))])
    assert same.score == share.score  # what differs was cut


def test_odd_texts_have_a_score_or_a_status(causal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = Likelihood(str(causal), device="cpu")
    texts = ["\U0001f600\U0001f44d", "</s><s>[MASK]<|end|>", "מה שלומך?", "\x00", "\u200b", "a" * 5000]
    rows = scorer.score([Example(str(i), "en", (Turn(" "), Turn("😀")), Turn(t)) for i, t in enumerate(texts)])
    assert all((row.score is not None) == (row.status in ("ok", "truncated")) for row in rows)
    assert [row.status for row in rows[:2]] == ["ok", "ok"] and rows[-2].status == "truncated"
    monkeypatch.setattr(scorer, "_encoded", lambda causal, text: tuple(causal.encode(text.strip("\n a"))))
    assert {row.status for row in scorer.score([Example("gone", "en", CONTEXT, Turn("a"))])} == {"empty"}


def test_probabilities_that_are_not_finite_are_failures(causal: Path) -> None:
    scorer = Likelihood(str(causal), device="cpu")
    scorer._causal = load_causal(str(causal), "cpu")
    with torch.no_grad():
        scorer._causal.model.lm_head.weight.fill_(float("nan"))
    for row in scorer.score([Example("e", "en", CONTEXT, Turn("Yes."))]):
        assert (row.score, row.status) == (None, "failed") and "not finite" in str(row.detail["reason"])


def test_wrong_options_are_named_together_and_a_missing_model_before_anything_is_scored(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        Likelihood("embedded", dimensions=["fluency"], normalise="words", max_turns=0)  # type: ignore[arg-type]
    assert all(word in str(caught.value) for word in ("fluency", "words", "max_turns"))
    with pytest.raises(ConfigError, match="no such file or folder"):
        Likelihood(str(tmp_path / "absent"))
    with pytest.raises(ConfigError, match=r"no config\.json"):
        load_causal(str(tmp_path))
    with pytest.raises(ConfigError, match="did you mean 'embedded'"):
        Likelihood("embeded")
    with pytest.raises(BackendError, match=r"huggingface-cli download owner/absent"):
        load_causal("owner/absent")


def test_what_is_needed_is_listed_without_loading(
    causal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"fluency.*\n.*words"):
        Likelihood.assets(dimensions=["fluency"], normalise="words")
    with pytest.raises(ConfigError, match=r"write a list, \[sensibleness\]"):
        Likelihood.assets(dimensions="sensibleness")
    with pytest.raises(ConfigError, match="no such file"):
        Likelihood.assets(str(tmp_path / "absent.gguf"))
    (there,) = Likelihood.assets(str(causal))
    assert there.present and there.where == str(causal.resolve())
    (hub,) = Likelihood.assets("owner/absent")
    assert hub.name == "causal language model owner/absent" and hub.fix == "huggingface-cli download owner/absent"
    monkeypatch.setenv("MDIALEVAL_CACHE", str(tmp_path))
    (file := tmp_path / "small.gguf").write_bytes(b"GGUF")
    assert [asset.name for asset in causal_assets(str(file))][1:] == ["gguf"]
    assert [asset.name for asset in causal_assets("embedded")][1:] == ["gguf"]
    missing = Asset("gguf", "package", False)
    monkeypatch.setattr(module, "package_asset", lambda name: missing)
    with pytest.raises(MissingExtraError, match=r"gguf.*mdialeval\[llm\]"):
        load_causal(str(file))


def test_a_model_is_named_by_its_content(causal: Path) -> None:
    before = identity(str(causal))
    assert before.startswith(causal.name + "@") and identity("owner/model") == "owner/model"
    assert Likelihood(str(causal)).signature != Likelihood(str(causal), max_turns=2).signature


def test_a_local_model_that_changed_in_place_is_asked_again(causal: Path, tmp_path: Path) -> None:
    row = {"id": "a", "language": "en", "context": ["Tea?"], "response": "Yes.", "ratings": {"quality": 1}}
    (tmp_path / "rated.jsonl").write_text(json.dumps(row), encoding="utf-8")
    scoring = {
        "sets": [{"path": str(tmp_path / "rated.jsonl")}],
        "scorers": [{"scorer": "likelihood", "options": {"model": str(causal)}}],
    }
    config = {"run": "one", "runs": str(tmp_path / "runs"), "score": scoring}
    before = api.score(config).stages[0].fingerprint
    assert api.score(config).stages[0].fingerprint == before
    (causal / "notes.txt").write_text("another version")
    try:
        assert api.score(config).stages[0].fingerprint != before
    finally:
        (causal / "notes.txt").unlink()


@pytest.mark.slow
def test_the_embedded_model_prefers_sense(tmp_path: Path) -> None:
    if not embedded_model_asset().present:
        pytest.skip("the embedded language model is not installed")
    scorer = Likelihood("embedded")
    context = (Turn("What is the capital of France?"),)
    texts = ("The capital of France is Paris.", "Paris is capital France the of.", "My cat likes warm milk.")
    fluency, sense = zip(
        *(tuple(p.score for p in scorer.score([Example("x", "en", context, Turn(text))])) for text in texts),
        strict=True,
    )
    assert fluency[0] > fluency[1]
    assert sense[0] > sense[2]
    loaded = load_causal("embedded")
    # As llama.cpp's own tokenizer writes them.
    assert loaded.encode("The capital of France is Paris.") == [818, 5279, 529, 7001, 563, 9079, 236761]
    assert loaded.start == (2,)
