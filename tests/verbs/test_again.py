"""A server that fails some rows and recovers: the next run asks those rows alone, and everything after is made anew."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from mdialeval import api
from mdialeval.cli import main
from mdialeval.errors import BackendError
from mdialeval.llm import asking
from mdialeval.records import Agreement, Prediction
from mdialeval.store import MANIFEST, Run, Stage

N = 20
FAILING = {3, 7, 11, 15, 19}
Answer = Callable[[str], tuple[int, str]]


class Server:
    """Speaks the chat protocol; ``answer`` maps a response's text to a status and a reply."""

    def __init__(self, port: int = 0) -> None:
        self.asked: list[str] = []
        self.answer: Answer = lambda text: (200, "4")
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                text = body["messages"][1]["content"].partition("<response>")[2]
                server.asked.append(text)
                status, reply = server.answer(text)
                choice = {"index": 0, "message": {"role": "assistant", "content": reply}, "finish_reason": "stop"}
                usage = {"prompt_tokens": 50, "completion_tokens": 1, "total_tokens": 51}
                content = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
                data = json.dumps(
                    content | {"usage": usage} if status == 200 else {"error": {"message": reply}}
                ).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.stop()


@pytest.fixture
def config(tmp_path: Path, server: Server) -> dict[str, Any]:
    path = tmp_path / "rated.jsonl"
    rows = [
        {
            "id": f"e{i}",
            "language": "en",
            "context": ["Hello."],
            "response": f"Reply {i}.",
            "ratings": {"quality": i % 3},
        }
        for i in range(N)
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    options = {"backend": "openai", "model": "m", "base_url": server.url, "criteria": ["sensibleness"], "retries": 0}
    options |= {"prices": {"prompt": 1.0, "completion": 2.0, "currency": "EUR"}}
    return {
        "run": "judged",
        "runs": str(tmp_path / "runs"),
        "score": {
            "sets": [{"name": "rated", "path": str(path)}],
            "scorers": [{"name": "judge", "scorer": "llm", "options": options}, {"scorer": "length"}],
        },
        "correlate": {"resamples": 0},
        "execution": {"shard_size": 6},
    }


def number(text: str) -> int:
    return int(text.partition("Reply ")[2].partition(".")[0])


def graded(text: str) -> tuple[int, str]:
    return 200, str(1 + number(text) % 5)


def stormy(text: str) -> tuple[int, str]:
    return (429, "slow down") if number(text) in FAILING else graded(text)


def judged(config: dict[str, Any]) -> tuple[Stage, list[Prediction]]:
    run = Run(Path(config["runs"]) / config["run"])
    stage = next(s for s in run.finished("score") if s.summary()["scorer"] == "judge")
    return stage, list(stage.read(Prediction))


@pytest.mark.parametrize("verb", ["score", "run"])
def test_a_finished_stage_asks_again_only_what_failed(config: dict[str, Any], server: Server, verb: str) -> None:
    server.answer = stormy
    getattr(api, verb)(config)
    stage, before = judged(config)
    assert stage.summary()["statuses"] == {"failed": 5, "ok": 15}
    assert (stage.summary()["prompt_tokens"], stage.summary()["money"]) == (750, "0.0008 EUR")
    shards = {path.name: path.read_bytes() for path in stage.shards()}
    server.asked.clear()
    server.answer = graded
    getattr(api, verb)(config)
    assert sorted(number(text) for text in server.asked) == sorted(FAILING), "the rest is not asked again"
    stage, after = judged(config)
    assert stage.summary()["statuses"] == {"ok": 20}
    for i, (old, new) in enumerate(zip(before, after, strict=True)):
        assert (new == old) == (i not in FAILING)
        assert new.score == 1 + i % 5
    assert len(shards) == 4 and all(path.read_bytes() != shards[path.name] for path in stage.shards())
    server.asked.clear()
    getattr(api, verb)(config)
    assert server.asked == []


def test_the_end_is_that_of_a_run_in_which_nothing_failed(
    config: dict[str, Any], server: Server, tmp_path: Path
) -> None:
    server.answer = stormy
    api.score(config)
    server.answer = graded
    api.score(config)
    mended, _ = judged(config)
    smooth = {**config, "runs": str(tmp_path / "smooth" / "runs")}
    api.score(smooth)
    unbroken, _ = judged(smooth)
    assert mended.folder.name == unbroken.folder.name
    names = [MANIFEST, *(path.name for path in mended.shards())]
    assert [(mended.folder / n).read_bytes() for n in names] == [(unbroken.folder / n).read_bytes() for n in names]


def test_correlations_are_made_anew(config: dict[str, Any], server: Server) -> None:
    server.answer = stormy
    first = {(a.scorer, a.statistic): a for a in api.rows(api.run(config).stages[0])}
    server.answer = graded
    outcome = api.run(config)
    second = {(a.scorer, a.statistic): a for a in api.rows(outcome.stages[0])}
    assert first["judge", "spearman"].n_scored == 15 and second["judge", "spearman"].n_scored == 20
    assert isinstance(second["judge", "spearman"], Agreement)
    assert first["length", "spearman"] == second["length", "spearman"]
    assert outcome.report is not None and "15 of 20" not in outcome.report.read_text(encoding="utf-8")


def test_a_server_that_is_gone_leaves_the_finished_rows(
    config: dict[str, Any], server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.answer = stormy
    api.score(config)
    _, before = judged(config)
    server.stop()
    api.score(config)
    stage, after = judged(config)
    assert after == before and stage.done
    assert "cannot be asked again" in caplog.text and "no connection" in caplog.text


def test_killed_while_asking_again_the_stage_is_finished_by_the_next_run(
    config: dict[str, Any], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer = stormy
    api.score(config)
    server.answer = graded
    whole = Stage.finish

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Stage, "finish", killed)
    with pytest.raises(KeyboardInterrupt):
        api.score(config)
    monkeypatch.setattr(Stage, "finish", whole)
    server.asked.clear()
    api.score(config)
    stage, after = judged(config)
    assert server.asked == [] and stage.summary()["statuses"] == {"ok": 20}
    assert all(p.status == "ok" for p in after)


def test_refusals_are_asked_again_only_where_the_user_wants_it(config: dict[str, Any], server: Server) -> None:
    server.answer = lambda text: (200, "I cannot rate this." if number(text) in FAILING else "3")
    api.score(config)
    server.answer = graded
    server.asked.clear()
    api.score(config)
    assert server.asked == [] and judged(config)[0].summary()["statuses"] == {"ok": 15, "refused": 5}
    api.score({**config, "score": {**config["score"], "retry": "unscored"}})
    assert len(server.asked) == 5 and judged(config)[0].summary()["statuses"] == {"ok": 20}


def test_retry_nothing_leaves_failures_alone(config: dict[str, Any], server: Server) -> None:
    server.answer = stormy
    api.score(config)
    server.asked.clear()
    api.score({**config, "score": {**config["score"], "retry": "nothing"}})
    assert server.asked == []


def test_one_criterion_that_failed_is_asked_without_the_other(
    config: dict[str, Any], server: Server, tmp_path: Path
) -> None:
    """Even without the cache: rows with an answer are never sent."""
    config["score"]["scorers"][0]["options"]["criteria"] = ["sensibleness", "understandability"]
    seen: list[int] = []

    def half(text: str) -> tuple[int, str]:
        seen.append(number(text))
        return graded(text) if seen.count(number(text)) == 1 else (503, "busy")

    server.answer = half
    api.score(config)
    assert judged(config)[0].summary()["statuses"] == {"failed": N, "ok": N}
    for path in (tmp_path / "runs").glob("llm.sqlite*"):
        path.unlink()
    server.asked.clear()
    server.answer = graded
    api.score(config)
    assert len(server.asked) == N and judged(config)[0].summary()["statuses"] == {"ok": 2 * N}


def test_a_key_that_is_refused_stops_the_first_run_with_a_message(config: dict[str, Any], server: Server) -> None:
    server.answer = lambda text: (401, "bad key")
    with pytest.raises(BackendError, match="check the key"):
        api.score(config)


def test_a_server_that_dies_loses_no_answered_row(config: dict[str, Any], server: Server) -> None:
    config["score"]["scorers"][0]["options"]["concurrency"] = 1

    def dying(text: str) -> tuple[int, str]:
        if len(server.asked) == 9:
            threading.Thread(target=server.stop).start()
            server.http.socket.close()
        return graded(text)

    server.answer = dying
    with pytest.raises(BackendError, match="no connection"):
        api.score(config)
    answered = len(server.asked)
    assert answered < N
    again = Server(server.http.server_port)
    again.answer = graded
    try:
        api.score(config)
    finally:
        again.stop()
    assert len(again.asked) == N - answered and not set(again.asked) & set(server.asked)
    assert judged(config)[0].summary()["statuses"] == {"ok": N}


def test_the_key_is_in_no_file_and_no_message(
    config: dict[str, Any],
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    secret = "sk-very-secret-0123456789"
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    caplog.set_level("DEBUG")
    server.answer = lambda text: (400, f"bad request of {secret}") if number(text) in FAILING else graded(text)
    api.run(config)
    assert secret not in caplog.text
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 10 and not any(secret.encode() in path.read_bytes() for path in files)
    assert any("***" in str(p.detail.get("reason")) for p in judged(config)[1])


def test_the_command_line_tells_replies_a_second_tokens_and_money(
    config: dict[str, Any],
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("MDIALEVAL_LOG", raising=False)
    monkeypatch.setattr(asking, "_REPORT_S", 0.0)
    path = tmp_path / "judge.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")
    loggers = [logging.getLogger(name) for name in ("mdialeval.llm.asking", "mdialeval.scorers.llm")]
    try:
        monkeypatch.setattr(sys, "argv", ["mdialeval", "score", str(path), "--dry-run"])
        with pytest.raises(SystemExit):
            main()
        assert "20 calls" in capsys.readouterr().out and server.asked == []
        monkeypatch.setattr(sys, "argv", ["mdialeval", "score", str(path)])
        with pytest.raises(SystemExit):
            main()
    finally:
        for logger in loggers:
            logger.setLevel(logging.NOTSET)
    assert "6 of 6 replies, " in caplog.text and " a second" in caplog.text
    assert "6 replies (0 cached), 300 + 6 tokens, 0.0003 EUR" in caplog.text
    out = capsys.readouterr().out
    assert "prompt_tokens 1,000" in out and "money 0.0010 EUR" in out


def test_too_many_failures_stop_the_run_and_the_next_asks_only_the_rest(config: dict[str, Any], server: Server) -> None:
    config["execution"]["max_failures"] = 2
    server.answer = stormy
    with pytest.raises(BackendError, match="max_failures=2"):
        api.score(config)
    answered = {number(text) for text in server.asked} - FAILING
    server.asked.clear()
    server.answer = graded
    api.score(config)
    assert {number(text) for text in server.asked} == set(range(N)) - answered
    assert judged(config)[0].summary()["statuses"] == {"ok": N}
