"""The judge against a local server that takes 200 ms a reply: this package's back end against the ideal.

The ideal is what ``concurrency`` tireless clients would reach: rows / (waves of ``concurrency`` rows * latency).  The
server is a process of its own that speaks the OpenAI chat protocol.  Second, the reply parser: replies a second.

    python scripts/benchmarks/llm.py [--rows 200] [--latency 0.2] [--concurrency 8] [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import statistics
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path

from mdialeval.llm.reply import parse_reply
from mdialeval.records import Example, Turn
from mdialeval.scorers.llm import LlmScorer

REPLIES = [
    "Score: 4",
    "4/5",
    "On a scale of 1-5 I'd say 2",
    "4,5",
    "４",
    "分数：4",
    '{"score": 3}',
    "I can't rate this.",
]


def serve(latency: float, port: Connection) -> None:
    """Answer every request with a score after ``latency`` seconds."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            time.sleep(latency)
            choice = {"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}
            body = json.dumps(
                {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    port.send(server.server_port)
    server.serve_forever()


def examples(rows: int, part: str) -> list[Example]:
    """Distinct examples, so that no two requests are equal."""
    context = (Turn("Did you sleep well?"), Turn("Not really, the street was loud."))
    return [Example(f"{part}-{i}", "en", context, Turn(f"I heard it {i} times, part {part}.")) for i in range(rows)]


def judged(url: str, rows: list[Example], concurrency: int, folder: Path) -> tuple[float, bool]:
    """Seconds for scoring all rows with a fresh cache, and whether all have the server's score."""
    scorer = LlmScorer(
        "openai", ["sensibleness"], cache=folder / "c.sqlite", model="m", base_url=url, concurrency=concurrency
    )
    start = time.perf_counter()
    found = scorer.score(rows)
    return time.perf_counter() - start, all(p.score == 4.0 for p in found)


def parser_speed(seconds: float = 0.5) -> float:
    """Replies a second of processor time."""
    count, start = 0, time.process_time()
    while time.process_time() - start < seconds:
        for reply in REPLIES:
            parse_reply(reply)
        count += len(REPLIES)
    return count / (time.process_time() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds a reply")
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    ours_end, server_end = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(options.latency, server_end), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{ours_end.recv()}/v1"
    ideal = math.ceil(options.rows / options.concurrency) * options.latency
    with tempfile.TemporaryDirectory() as folder:
        judged(url, examples(options.concurrency, "warm"), options.concurrency, Path(folder))
        rounds = [
            judged(url, examples(options.rows, str(n)), options.concurrency, Path(folder) / str(n))
            for n in range(options.rounds)
        ]
    server.terminate()
    seconds = statistics.median(s for s, _ in rounds)
    speed = parser_speed()
    print(f"{'':12}{'seconds':>9}{'rows/s':>9}")
    print(f"{'ideal':12}{ideal:9.2f}{options.rows / ideal:9.1f}")
    print(f"{'ours':12}{seconds:9.2f}{options.rows / seconds:9.1f}")
    print(f"parser: {speed:,.0f} replies a second")
    result = {
        "name": "llm",
        "ours": round(options.rows / seconds, 2),
        "peer": round(options.rows / ideal, 2),
        "unit": "rows/s",
        "ratio": round(ideal / seconds, 3),
        "equal": all(same for _, same in rounds),
        "rounds": [round(s, 2) for s, _ in rounds],
        "parser_replies_per_second": round(speed),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
