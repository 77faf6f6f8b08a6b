"""Scores brought to one scale and weighted, and agreement of annotators."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from mdialeval.agreement.agree import correlate
from mdialeval.agreement.annotators import krippendorff_alpha, leave_one_out
from mdialeval.agreement.combine import MinMax, ensemble, fit_fusion, fuse, rescaled_weights, z_scores
from mdialeval.errors import ConfigError, DataError
from mdialeval.records import Example, Prediction, Turn


def test_scaling_clips_and_changes_no_input() -> None:
    scores = [0.0, 2.0, None, 8.0]
    scale = MinMax.fit([1.0, None, 5.0])
    assert scale.apply(scores) == [0.0, 0.25, None, 1.0]
    assert scores == [0.0, 2.0, None, 8.0]
    with pytest.raises(DataError, match="1 distinct"):
        MinMax.fit([0.5, 0.5, None])


def test_standard_scores_and_ensembles_keep_gaps() -> None:
    assert z_scores([2.0, 2.0, None]) == [0.0, 0.0, None]
    assert z_scores([None]) == [None]
    assert np.std([z for z in z_scores([1.0, 4.0, 9.0]) if z is not None]) == pytest.approx(1.0)
    assert ensemble([[0.0, None], [1.0, 1.0]]) == [0.5, None]
    with pytest.raises(ValueError, match="longer"):
        ensemble([[0.0], [1.0, 1.0]])


def dev_scores() -> tuple[dict[str, list[float]], list[float]]:
    random = np.random.default_rng(5)
    y = random.integers(1, 6, 300).astype(float)
    good = y + random.normal(size=300)
    return {
        "good": good.tolist(),
        "fair": (y + 3 * random.normal(size=300)).tolist(),
        "noise": random.permutation(good).tolist(),
        "loss": (-y + 2 * random.normal(size=300)).tolist(),
        "flat": [0.5] * 300,
    }, y.tolist()


def test_weights_are_squared_correlations_without_the_undetectable_and_the_negative() -> None:
    scores, ratings = dev_scores()
    weights = rescaled_weights(scores, ratings)
    assert [weights[n].weight for n in ("noise", "loss", "flat")] == [0.0, 0.0, 0.0]
    assert weights["loss"].reason == "negative"
    assert weights["flat"].reason == "constant predictions"
    assert weights["good"].weight / weights["fair"].weight == pytest.approx(
        (weights["good"].rho / weights["fair"].rho) ** 2
    )
    assert sum(w.weight for w in weights.values()) == pytest.approx(1.0)


def test_negative_weights_do_not_explode() -> None:
    """Dividing by the plain sum gave published weights of 40 and -72; by absolute values none exceeds 1."""
    scores, ratings = dev_scores()
    weights = rescaled_weights(scores, ratings, may_be_negative=["loss"])
    assert weights["loss"].weight < 0
    assert sum(abs(w.weight) for w in weights.values()) == pytest.approx(1.0)


def test_only_undetectable_scores_keep_their_weight_and_only_bad_ones_are_an_error() -> None:
    ratings = [1.0, 2, 3, 4]
    weights = rescaled_weights({"a": [1, 3, 2, 4], "b": [2.0, 1, 4, 3]}, ratings)
    assert weights["a"].weight > weights["b"].weight > 0
    with pytest.raises(DataError, match="none of a"):
        rescaled_weights({"a": [4, 3, 2, 1]}, ratings)


def set_of(ids: range, seed: int) -> tuple[list[Example], list[Prediction]]:
    random = np.random.default_rng(seed)
    examples, predictions = [], []
    for i in ids:
        rating = float(random.integers(1, 6))
        examples.append(Example(f"e{i}", "en", (), Turn("x"), {"overall": rating}, f"d{i}"))
        for scorer, noise in (("a", 2.0), ("b", 2.0)):
            score = 10 * (rating + noise * random.normal())
            predictions.append(Prediction(f"e{i}", "en", scorer, "sensibleness", score, "ok"))
    return examples, predictions


def test_fusion_fitted_on_dev_beats_its_parts_on_test() -> None:
    dev, dev_predictions = set_of(range(200), 1)
    test, predictions = set_of(range(200, 600), 2)
    fusion = fit_fusion(dev_predictions, dev, "overall")
    fused = fuse(predictions, fusion, test, "fused")
    assert fusion.n == 200
    assert all(p.score is not None and 0 <= p.score <= 1 + 1e-9 for p in fused)
    values = {
        a.scorer: a.value
        for a in correlate(predictions + fused, test, dataset="t", statistics=["spearman"], resamples=0)
    }
    assert values["fused"] > max(values["a"], values["b"])


def test_fusion_refuses_what_it_was_fitted_on_and_reports_gaps() -> None:
    dev, dev_predictions = set_of(range(50), 1)
    test, predictions = set_of(range(50, 60), 2)
    fusion = fit_fusion(dev_predictions, dev, "overall")
    with pytest.raises(DataError, match="50 dialogues were used to fit"):
        fuse(dev_predictions, fusion, dev, "fused")
    (first, *rest) = fuse(predictions[1:], fusion, test, "fused")
    assert (first.score, first.status, first.detail) == (None, "failed", {"missing": "a sensibleness"})
    assert all(p.status == "ok" for p in rest)
    with pytest.raises(DataError, match="0 of 10 examples"):
        fit_fusion(dev_predictions, test, "overall")


def test_alpha_on_krippendorffs_own_example() -> None:
    """Four observers, twelve units, with gaps: nominal .743, ordinal .815, interval .849 (Krippendorff 2011, part D)."""
    n = None
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, n, n, n],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, n, 3],
        [n, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, n],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, n],
    ]
    units = list(zip(*observers, strict=True))
    for scale, expected in (("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)):
        assert krippendorff_alpha(units, scale).value == pytest.approx(expected, abs=6e-4)  # type: ignore[arg-type]


def test_alpha_is_undefined_with_a_reason() -> None:
    assert krippendorff_alpha([[1, 1], [1, None]]) == (None, "constant ratings")
    assert krippendorff_alpha([[1], [None, 2]]) == (None, "no item has two ratings")
    with pytest.raises(ConfigError, match="did you mean 'ordinal'"):
        krippendorff_alpha([[1, 2]], "ordinall")  # type: ignore[arg-type]


@pytest.mark.shared_data
def test_ten_raters_of_the_holistic_set(shared_data: Path) -> None:
    with open(shared_data / "holistic" / "fluency_data_release.csv", encoding="utf-8", newline="") as stream:
        units = [[float(v) for v in row[-10:]] for row in csv.reader(stream)]
    assert len(units) == 200
    alpha = krippendorff_alpha(units).value
    assert alpha is not None
    assert 0.1 < alpha < 0.9
    assert len(leave_one_out(units)) == 10
