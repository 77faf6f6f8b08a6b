"""The embedded estimator: what is shipped, what it reaches, and that a wrong translation scores lower."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import torch

from mdialeval.rank.embedded.estimator import Embedded
from mdialeval.rank.embedded.features import N_ALIGNMENT, alignment, text_features
from mdialeval.rank.embedded.head import HEAD, load_head, read_card
from mdialeval.rank.evaluate import meta_evaluate
from mdialeval.rank.gold import read_gold
from mdialeval.records import Translation

Row = Callable[..., Translation]


@pytest.fixture(scope="module")
def embedded() -> Embedded:
    return Embedded(device="cpu")


def test_what_is_shipped_is_small_and_says_what_it_is() -> None:
    assert (resources.files("mdialeval.rank.embedded") / HEAD).stat().st_size < 8_000_000  # type: ignore[attr-defined]
    head, centre = load_head()
    assert head.layers.sum(1).tolist() == pytest.approx([1.0] * len(head.members), abs=1e-3)
    assert centre.shape == (7, 384)
    for part in ("MLQE-PE", "CC0", "test20 en-de", "zero-shot", "Limits"):
        assert part in read_card()


def test_alignment_of_equal_texts_is_perfect_and_padding_changes_nothing() -> None:
    torch.manual_seed(0)
    one, other, centre = torch.randn(1, 2, 5, 8), torch.randn(1, 2, 4, 8), torch.zeros(2, 8)
    mask, other_mask = torch.ones(1, 5, dtype=torch.bool), torch.ones(1, 4, dtype=torch.bool)
    same = alignment(one, mask, one, mask, centre)
    assert same.shape == (1, 2, N_ALIGNMENT)
    mean, spread, lowest, quarter = same[0, 0, :4].tolist()
    assert (mean, spread, lowest, quarter) == pytest.approx((1, 0, 1, 1), abs=1e-5)
    assert same[0, 0, 8:12].tolist() == pytest.approx([1, 1, 1, 1], abs=1e-5)  # all mutual, in order
    padded = torch.cat([other, torch.randn(1, 2, 3, 8)], dim=2)
    padded_mask = torch.tensor([[True] * 4 + [False] * 3])
    expected = alignment(one, mask, other, other_mask, centre)
    assert torch.allclose(alignment(one, mask, padded, padded_mask, centre), expected, atol=1e-6)
    nothing = torch.zeros(1, 4, dtype=torch.bool)
    assert torch.isfinite(alignment(one, mask, other, nothing, centre)).all()


def test_text_features_see_numbers_and_shared_pieces() -> None:
    unigram = np.log(np.full(10, 0.1))
    features = text_features("room 12 at 7", "Zimmer 12 um 8", [5, 6, 7], [5, 8, 9, 9], unigram)
    assert features[2] == pytest.approx(math.log(4 / 3))
    assert features[10:12] == pytest.approx([1 / 3, 1 / 3])
    assert features[14:16] == [2.0, 1.0]


def test_better_translations_of_a_sentence_score_higher(embedded: Embedded, row: Row) -> None:
    source = "My brother lost his keys at the station yesterday, so he had to sleep at a friend's place."
    good = "Mein Bruder hat gestern am Bahnhof seine Schlüssel verloren, deshalb musste er bei einem Freund schlafen."
    other = "Das Wetter in den Bergen war im letzten Sommer viel besser als in diesem Jahr, fanden alle."
    right, wrong = embedded.estimate([row(source, good), row(source, other)])
    assert right > wrong


def test_real_sentences_get_scores_of_their_own(embedded: Embedded, shared_data: Path) -> None:
    gold = read_gold(shared_data / "mlqe-pe" / "test21.enja.src")[:16]  # zero-shot
    scores = embedded.estimate([g.translation for g in gold])
    assert len({round(s, 4) for s in scores}) > 14
    assert all(math.isfinite(s) for s in scores)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "least"),
    [("test20.ende.df.short.tsv", 0.36), ("test20.enzh.df.short.tsv", 0.36), ("test21.enja.src", 0.24)],
)
def test_figures_of_the_card(embedded: Embedded, shared_data: Path, name: str, least: float) -> None:
    gold = read_gold(shared_data / "mlqe-pe" / name)
    scores = embedded.estimate([g.translation for g in gold])
    pearson = meta_evaluate(scores, [g.score for g in gold], [50], resamples=50).correlations[0].value
    assert pearson is not None
    assert pearson > least


@pytest.mark.slow
def test_mismatched_dialogue_turns_score_lower(embedded: Embedded, shared_data: Path, row: Row) -> None:
    with open(shared_data / "dialevalml" / "DD_test_post_edits.csv", encoding="utf-8", newline="") as stream:
        turns = [r for r in csv.DictReader(stream) if r["src"].strip()][:60]
    for language in ("pt", "de", "fr", "es", "ja", "zh"):
        right = embedded.estimate([row(r["src"], r[language], language) for r in turns])
        wrong = embedded.estimate([row(r["src"], turns[i - 7][language], language) for i, r in enumerate(turns)])
        area = np.mean([[a > b for b in wrong] for a in right])
        assert area > 0.8, (language, area)
