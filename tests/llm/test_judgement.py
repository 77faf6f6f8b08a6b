"""From completions to scores: no mode falls back to another, repetitions have a spread, costs are shown."""

from __future__ import annotations

import pytest

from mdialeval.errors import ConfigError
from mdialeval.llm.estimate import Prices, approximate_tokens
from mdialeval.llm.judgement import Judgement, combine, judge
from mdialeval.llm.protocol import Completion
from mdialeval.llm.tokens import Token, score_labels, score_probabilities

SCALE = (1.0, 5.0)


def test_expectation_weights_the_scores_and_records_the_coverage() -> None:
    found = judge(Completion("4", {"4": 0.6, "5": 0.2}), "expectation", SCALE)
    assert found.score == pytest.approx(4.25) and found.coverage == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("completion", "status"),
    [
        (Completion("4", {}), "unparsed"),
        (Completion("4", {"4": 0.01}), "unparsed"),
        (Completion("4", None), "unparsed"),
        (Completion("I can't rate this.", None), "refused"),
        (Completion("", None), "empty"),
        (Completion("9", None), "out_of_range"),
        (Completion("4", None, "none sent", finish="no_probabilities"), "unsupported"),
        (Completion(None, None, "status 500", finish="failed"), "failed"),
        (Completion("", None, finish="refusal"), "refused"),
        (Completion(None, None, "too long", finish="too_long"), "unsupported"),
    ],
)
def test_expectation_never_falls_back_to_the_number(completion: Completion, status: str) -> None:
    found = judge(completion, "expectation", SCALE, min_coverage=0.1)
    assert (found.score, found.status) == (None, status)
    assert found.reason


def test_number_reads_the_text_whatever_the_probabilities() -> None:
    assert judge(Completion("Score: 2", {"5": 1.0}), "number", SCALE) == Judgement(2.0, "ok")
    assert judge(Completion("4", None, finish="no_probabilities"), "number", SCALE).score == 4


@pytest.mark.parametrize(
    ("text", "pieces", "label"),
    [
        ("4/5", ["4", "/", "5"], "4"),
        ("I count 2 flaws, so the score is 3", ["I count ", "2", " flaws, so the score is", " 3"], "3"),
        ("Score: 5\nNo wait. Score: 2", ["Score:", " 5", "\nNo wait. Score:", " 2"], "2"),
        ('{"score": 4}', ['{"score":', " 4", "}"], "4"),
        ("４", ["４"], "4"),
        ("4.5", ["4", ".", "5"], None),
        ("45", ["4", "5"], None),
        ("great", ["great"], None),
    ],
)
def test_the_position_of_the_score(text: str, pieces: list[str], label: str | None) -> None:
    tokens = [Token(piece, {piece: 0.5 + i / 100}) for i, piece in enumerate(pieces)]
    found = score_probabilities(text, tokens, SCALE)
    assert (None if found is None else list(found)) == (None if label is None else [label])
    if label is not None and found is not None:
        last = max(i for i, piece in enumerate(pieces) if piece.strip() in (label, "４"))
        assert found[label] == 0.5 + last / 100


@pytest.mark.parametrize("scale", [(1, 10), (0.5, 4.5), (1, 100), (5, 1)])
def test_scales_whose_scores_are_not_one_token_are_refused(scale: tuple[float, float]) -> None:
    with pytest.raises(ConfigError, match="0 to 9"):
        score_labels(scale)


def test_repetitions_have_a_mean_and_a_spread() -> None:
    found = combine([Judgement(4, "ok"), Judgement(2, "ok"), Judgement(None, "unparsed", "no score")])
    assert found.judgement.score == 3 and found.spread == 1 and found.scores == (4, 2, None)
    failed = combine([Judgement(4, "ok"), Judgement(None, "failed", "status 500")])
    assert failed.judgement.status == "failed" and failed.judgement.score is None
    nothing = combine(
        [Judgement(None, "refused", "no"), Judgement(None, "unparsed", "x"), Judgement(None, "refused", "no")]
    )
    assert nothing.judgement == Judgement(None, "refused", "no")


def test_prices_are_checked_and_multiplied() -> None:
    prices = Prices.of({"prompt": 0.15, "completion": 0.6, "currency": "EUR"})
    assert prices is not None and prices.money(2_000_000, 500_000) == pytest.approx(0.6)
    assert Prices.of(None) is None
    with pytest.raises(ConfigError) as caught:
        Prices.of({"promt": 1, "completion": -1})
    assert len(caught.value.problems) == 3


def test_tokens_are_counted_by_script() -> None:
    assert approximate_tokens("") == 0
    assert approximate_tokens("a" * 400) == 100
    assert 80 <= approximate_tokens("你" * 100) <= 100
    assert approximate_tokens("я" * 100) == 40
