"""The likelihood scorer: its sums are the model's own, whatever is read once and whatever is batched."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from mdialeval.errors import BackendError, ConfigError
from mdialeval.llm.causal import identity, load_causal, log_probabilities
from mdialeval.llm.gemma import embedded_model_asset
from mdialeval.records import Example, Turn
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
        found = log_probabilities(loaded, [0, 5, 6], texts, batch_size)
        assert [len(values) for values in found] == [len(text) for text in texts]
        for values, text in zip(found, texts, strict=True):
            assert float(values.sum()) == pytest.approx(plain(causal, [0, 5, 6], text), abs=1e-4)


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


def test_wrong_options_are_named_together_and_a_missing_model_before_anything_is_scored(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        Likelihood("embedded", dimensions=["fluency"], normalise="words", max_turns=0)  # type: ignore[arg-type]
    assert all(word in str(caught.value) for word in ("fluency", "words", "max_turns"))
    with pytest.raises(ConfigError, match="no such file or folder"):
        Likelihood(str(tmp_path / "absent"))
    with pytest.raises(BackendError, match="name a folder"):
        load_causal(str(tmp_path))


def test_a_model_is_named_by_its_content(causal: Path) -> None:
    before = identity(str(causal))
    assert before.startswith(causal.name + "@") and identity("owner/model") == "owner/model"
    assert Likelihood(str(causal)).signature != Likelihood(str(causal), max_turns=2).signature


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
