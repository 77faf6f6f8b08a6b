"""A report in which every part is filled."""

from __future__ import annotations

import numpy as np
import pytest

from mdialeval.agreement.agree import correlate
from mdialeval.agreement.annotators import SelfAgreement
from mdialeval.agreement.compare import compare
from mdialeval.records import Example, Prediction, Turn
from mdialeval.report.data import (
    Component,
    Curves,
    Distribution,
    FlagCount,
    Funnel,
    Notice,
    Point,
    RatedSet,
    ReportData,
    Sample,
    Scatter,
    Series,
    Signature,
    Step,
    Training,
)

HOSTILE = "<script>alert('x')</script> & \"quoted\" $a_b$"


@pytest.fixture(scope="session")
def report_data() -> ReportData:
    """Three scorers (one hostile name, one constant in Japanese), two languages, every section."""
    random = np.random.default_rng(0)
    examples, predictions = [], []
    for i in range(60):
        rating = float(random.integers(1, 6))
        for code in ("en", "ja"):
            examples.append(Example(f"e{i}", code, (Turn("Hi."),), Turn("Yes."), {"overall": rating}, f"d{i // 3}"))
            score = rating + 2 * random.normal()
            refused = i % 4 == 0 and code == "en"
            for scorer, value in (
                ("evaluator", score),
                (HOSTILE, None if refused else -score),
                ("判定器", 3.0 if code == "ja" else score),
            ):
                status = "refused" if value is None else "ok"
                predictions.append(Prediction(f"e{i}", code, scorer, "sensibleness", value, status))  # type: ignore[arg-type]
    agreements = correlate(
        predictions, examples, dataset="talk", statistics=["spearman", "pearson", "acc_eq"], resamples=50
    )
    points = tuple((e.ratings["overall"], float(i)) for i, e in enumerate(examples))
    return ReportData(
        title=f"Report {HOSTILE}",
        run="r1",
        summary="Two sentences. No more.",
        settings={"train": {"epochs": 2, "note": HOSTILE}},
        repeats=(
            SelfAgreement("evaluator", "talk", "en", "sensibleness", 3, 60, 58, 0.8125, 0.25),
            SelfAgreement("evaluator", "talk", "ja", "sensibleness", 3, 60, 60, None, 0.0, "constant ratings"),
        ),
        notices=(Notice("translate, ja", "7 turns were cut"), Notice("rank", "read me", "note")),
        funnels=(
            Funnel(
                "ja",
                100,
                (("copied_source", 3), ("below_cut", 57)),
                40,
                (
                    Sample("copied_source", "d1#2", HOSTILE, HOSTILE, None, "repeats its source"),
                    Sample("below_cut", "d1#3", "Shall we go?", "行きましょうか。", -0.1234),
                ),
            ),
            Funnel("ar", 0, (), 0, (Sample("below_cut", "d9#1", "Tea?", "شاي؟", 0.5),)),
        ),
        flags=(FlagCount("ja", "number_mismatch", 11, 100),),
        distributions=(
            Distribution("qe_score", "ja", tuple(random.normal(size=50).tolist()), 100, 0.1),
            Distribution("qe_score", "ar", (0.25,), 1),
        ),
        trainings=(
            Training(
                "sensibleness", (Step(1, 0.7), Step(2, 0.5, 0.6, 0.71)), "accuracy", (("pairs_per_second", 44.125),)
            ),
            Training("understandability", ()),
        ),
        sets=(
            RatedSet("talk", "human", 120, ("en", "ja"), "1 to 5", "MIT"),
            RatedSet("made", "by construction", 1, ("en",)),
        ),
        agreements=tuple(agreements),
        comparisons=tuple(compare(predictions, examples, dataset="talk", resamples=50)),
        scatters=(
            Scatter("talk", "en", HOSTILE, "sensibleness", "overall", points, 4000),
            Scatter("talk", "ja", HOSTILE, "sensibleness", "overall", ((3.0, 0.5),), 1),
        ),
        curves=(
            Curves(
                "Kept quality",
                "kept (per cent)",
                "quality",
                (
                    Series(HOSTILE, (Point(5, 0.375, 0.3, 0.45), Point(100, 0.3125, 0.2, 0.4))),
                    Series("one", (Point(5, 1),)),
                ),
                "Higher is better.",
            ),
        ),
        components=(Component("encoder", "small", "0.3.0", "MIT", True),),
        signatures=(Signature("evaluator", "scorer:evaluator|dtype:float32"),),
    )
