"""Several estimators as one ranking key, from the YAML to the funnel."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from mdialeval import api
from mdialeval.cli import main
from mdialeval.config.load import parse
from mdialeval.errors import ConfigError
from mdialeval.rank.gold import read_gold
from mdialeval.records import QualityScore, RankedTranslation, Translation
from mdialeval.store import load_stage

Values = dict[str, Any]
LINES = (
    "Are you coming with me?",
    "Yes, after the dishes.",
    "Then we buy plums.",
    "How many do we need?",
    "Two dozen.",
)


class Counted:
    """A stand-in that leaves a line in a file for every row it is asked about; lower is better where ``turned``."""

    def __init__(self, log: str, salt: int, turned: bool = False) -> None:
        self.log, self.salt, self.higher_is_better = Path(log), salt, not turned
        self.identity = f"estimator:counted|salt:{salt}|turned:{turned}"

    def estimate(self, pairs: Sequence[Translation]) -> list[float]:
        with self.log.open("a") as stream:
            stream.writelines(f"{self.salt}\n" for _ in pairs)
        sign = 1 if self.higher_is_better else -1
        return [sign * float((len(row.hypothesis) * 7919 * self.salt + row.turn) % 101) for row in pairs]


@pytest.fixture
def values(tmp_path: Path) -> Callable[..., Values]:
    """A function that gives a run over a small corpus with some ``rank`` settings."""
    path = tmp_path / "d.jsonl"
    items = [{"id": f"d{i}", "language": "en", "turns": [f"{line} Number {i}." for line in LINES]} for i in range(8)]
    path.write_text("\n".join(map(json.dumps, items)), encoding="utf-8")
    sys.path.insert(0, str(Path(__file__).parent))

    def build(translate: Values | None = None, **rank: Any) -> Values:
        return {
            "runs": str(tmp_path / "runs"),
            "corpus": {"path": str(path)},
            "translate": {"routes": {"pt": "dummy", "es": "dummy"}, **(translate or {})},
            "rank": rank,
            "execution": {"shard_size": 3},
        }

    return build


def _ranked(values: Values) -> tuple[list[RankedTranslation], Values]:
    stage = api.rank(values).stages[0]
    return list(api.rows(stage)), stage.summary()


def test_changed_weights_and_k_score_nothing_again(values: Callable[..., Values], tmp_path: Path) -> None:
    log = tmp_path / "log"

    def parts(weight: float) -> list[Values]:
        options = {"log": str(log)}
        return [
            {"estimator": "test_combined:Counted", "name": "one", "options": {**options, "salt": 3}},
            {
                "estimator": "test_combined:Counted",
                "name": "two",
                "weight": weight,
                "options": {**options, "salt": 5, "turned": True},
            },
        ]

    first, summary = _ranked(values(estimator="combined", parts=parts(0.5), k=20))
    asked = log.read_text()
    assert asked.count("3\n") == asked.count("5\n") == 2 * 8 * 5
    second, _ = _ranked(values(estimator="combined", parts=parts(4), k=[20, 50]))
    alone, _ = _ranked(values(estimator="test_combined:Counted", options={"log": str(log), "salt": 3}, k=20))
    assert log.read_text() == asked
    scores = [[row.score for row in rows] for rows in (first, second, alone)]
    assert scores[0] != scores[1]
    for language in ("pt", "es"):  # the definition, from the shards of each part
        rows = [row for row in first if row.translation.language == language]
        own = [float((len(r.translation.hypothesis) * 7919 * 3 + r.translation.turn) % 101) for r in rows]
        other = [float((len(r.translation.hypothesis) * 7919 * 5 + r.translation.turn) % 101) for r in rows]
        expected = (stats.zscore(own) + 0.5 * stats.zscore(other)) / 1.5
        assert [row.score for row in rows] == pytest.approx(expected.tolist())
    line = (
        "estimator:combined|z-scores:language|1*(estimator:counted|salt:3|turned:False)|0.5*(estimator:counted|salt:5"
    )
    assert summary["estimator"].startswith(line)
    signals = summary["funnels"][0]["signals"]
    assert [(s["name"], s["weight"], s["n_scored"]) for s in signals] == [("one", 1.0, 40), ("two", 0.5, 40)]


def test_embedded_cosine_and_chrf_of_the_back_translation(values: Callable[..., Values]) -> None:
    parts = [
        {"estimator": "embedded", "weight": 1},
        {"estimator": "cosine", "weight": 0.5},
        {"estimator": "chrf_back", "weight": 0.3},
    ]
    settings = values({"routes": {"pt": "dummy"}, "back": True}, estimator="combined", parts=parts, k=[25, 50])
    settings["rank"]["leave_out"] = []  # the dummy engine's letters are no Portuguese
    rows, summary = _ranked(settings)
    stages = sorted(Path(settings["runs"]).glob("default/estimate-*"))
    assert len(stages) == 3
    by_part = {}
    for stage in map(load_stage, stages):
        found = [row.score for row in stage.read(QualityScore)]
        by_part[stage.summary()["estimator"].partition("|")[0]] = stats.zscore(np.array(found, float))
    weighted = by_part["estimator:embedded"] + 0.5 * by_part["estimator:cosine"] + 0.3 * by_part["estimator:chrf_back"]
    assert [row.score for row in rows] == pytest.approx((weighted / 1.8).tolist(), abs=1e-9)
    kept = [row.translation.id for row in rows if row.kept]
    order = np.argsort(-np.array([row.score for row in rows]), kind="stable")
    assert sorted(kept) == sorted(rows[i].translation.id for i in order[:10])
    names = ["embedded", "cosine", "chrf_back"]
    assert all([s["name"] for s in funnel["signals"]] == names for funnel in summary["funnels"])
    assert not any(s["constant"] for s in summary["funnels"][0]["signals"])


def test_a_row_that_lacks_one_part_has_no_score_and_is_counted(values: Callable[..., Values], tmp_path: Path) -> None:
    table = tmp_path / "given.csv"
    table.write_text(
        "id,score\n" + "".join(f"d{i}#{t},{i + t}\n" for i in range(8) for t in range(5) if (i, t) != (2, 3))
    )
    parts = [{"estimator": "dummy"}, {"estimator": "given", "options": {"path": str(table)}}]
    rows, summary = _ranked(values(estimator="combined", parts=parts, k=100))
    missing = [row for row in rows if row.reason == "not_a_number"]
    assert [row.translation.id for row in missing] == ["d2#3", "d2#3"]
    assert [s["n_scored"] for s in summary["funnels"][0]["signals"]] == [40, 39]
    assert summary["unscored"] == {"given: no estimate": 2}


@pytest.mark.parametrize(
    ("rank", "message"),
    [
        ({"estimator": "combined"}, r"rank: estimator: combined needs parts, such as \[\{estimator: embedded"),
        ({"parts": [{"estimator": "dummy"}]}, "parts are those of estimator: combined, not of 'embedded'"),
        (
            {"estimator": "combined", "parts": [{"estimator": "dummy", "weight": 0}]},
            r"parts\.0\.weight.*greater than 0",
        ),
        ({"estimator": "combined", "parts": [{"estimator": "dummy", "weight": "much"}]}, r"parts\.0\.weight.*'much'"),
        ({"estimator": "combined", "parts": [{"estimator": "dummy", "weight": float("nan")}]}, r"parts\.0\.weight"),
        (
            {"estimator": "combined", "parts": [{"estimator": "dummy", "wieght": 1}]},
            "unknown key, did you mean 'weight'",
        ),
        ({"estimator": "combined", "parts": [{"weight": 1}]}, r"parts\.0\.estimator: this key is needed"),
        ({"estimator": "combined", "parts": [{"estimator": "dummy"}] * 2}, "two parts are called 'dummy'"),
        (
            {"estimator": "combined", "parts": [{"estimator": "dummy"}], "options": {"a": 1}},
            "options belong to each of the parts",
        ),
    ],
)
def test_wrong_parts_are_refused_by_the_configuration(rank: Values, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse({"rank": rank})


def test_unknown_estimators_and_options_are_listed_before_anything_is_scored(values: Callable[..., Values]) -> None:
    parts = [
        {"estimator": "embeded"},
        {"estimator": "cosine", "options": {"encodr": "x"}},
        {"estimator": "chrf_back", "weight": 2},
    ]
    with pytest.raises(ConfigError) as caught:
        api.rank(values(estimator="combined", parts=parts))
    text = str(caught.value)
    assert "rank.parts, embeded: unknown estimator 'embeded': did you mean 'embedded'? (known: embedded, comet," in text
    assert "has no option 'encodr': did you mean 'encoder'" in text
    assert "'chrf_back' needs translate.back: true" in text
    assert not list(Path(values()["runs"]).glob("default/estimate-*"))


def test_a_combined_signal_is_checked_against_gold(tmp_path: Path) -> None:
    gold = tmp_path / "gold.en-pt.tsv"
    texts = [("Good day", "Bom dia", 0.9), ("See you", "Até logo", 0.7), ("No", "Sim", 0.1), ("Plum", "Ameixa", 0.8)]
    gold.write_text("source\tmt\tscore\n" + "".join(f"{s}\t{h}\t{v}\n" for s, h, v in texts), encoding="utf-8")
    scores = tmp_path / "s.csv"
    scores.write_text("id,score\n" + "".join(f"{i}#0,{v}\n" for i, (_, _, v) in enumerate(texts)))
    ids = [g.translation.id for g in read_gold(gold)]
    scores.write_text("id,score\n" + "".join(f"{n},{v}\n" for n, (_, _, v) in zip(ids, texts, strict=True)))
    parts = [{"estimator": "given", "options": {"path": str(scores)}}, {"estimator": "dummy", "weight": 1e-6}]
    (found,) = api.evaluate_estimator(gold, {"rank": {"estimator": "combined", "parts": parts}})
    assert found.correlations[0].value == pytest.approx(1.0, abs=1e-4)


def test_the_command_line_writes_and_draws_an_evaluation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gold = tmp_path / "gold.en-pt.tsv"
    gold.write_text("source\tmt\tscore\n" + "".join(f"word {i}\tpalavra {i}\t{i % 5}\n" for i in range(20)))
    command = ["mdialeval", "rank", "--evaluate", str(gold), "--set", "rank.estimator=dummy"]
    for more, made in (
        (["--output", str(tmp_path / "qe.csv")], ("qe.csv", "qe.png")),
        (["--plot", str(tmp_path / "kept.svg")], ("kept.svg",)),
    ):
        monkeypatch.setattr(sys, "argv", [*command, *more])
        with pytest.raises(SystemExit) as stop:
            main()
        assert not stop.value.code
        said = capsys.readouterr().out
        assert "pt: 20 of 20 rows scored" in said
        assert all(f"{tmp_path / name}: written" in said and (tmp_path / name).stat().st_size for name in made)
    monkeypatch.setattr(sys, "argv", [*command, "--plot", "kept.txt"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == ConfigError.exit_code
