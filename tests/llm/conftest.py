"""A local server that speaks the OpenAI chat protocol, and two tiny random models."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Answer = Callable[[dict[str, Any]], tuple[int, dict[str, str], dict[str, Any]]]


class ChatServer:
    """Answers chat requests by a function; counts them, and can be killed."""

    def __init__(self) -> None:
        self.answer: Answer = lambda body: (200, {}, self.reply("4"))
        self.latency = 0.0
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.times: list[float] = []
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()
        self._dead = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                if server._dead.is_set():
                    self.close_connection = True
                    return
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with server._lock:
                    server.bodies.append(body)
                    server.headers.append({k.lower(): v for k, v in self.headers.items()})
                    server.times.append(time.monotonic())
                    server.at_once += 1
                    server.most_at_once = max(server.most_at_once, server.at_once)
                time.sleep(server.latency)
                status, headers, content = server.answer(body)
                with server._lock:
                    server.at_once -= 1
                data = json.dumps(content).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    @staticmethod
    def reply(
        text: str | None, tokens: list[tuple[str, dict[str, float]]] | None = None, **more: Any
    ) -> dict[str, Any]:
        """The body of a chat completion; tokens are (text, alternatives with probabilities)."""
        listed = None
        if tokens is not None:
            listed = {
                "content": [
                    {
                        "token": token,
                        "logprob": float(np.log(alternatives.get(token, 1.0))),
                        "top_logprobs": [{"token": t, "logprob": float(np.log(p))} for t, p in alternatives.items()],
                    }
                    for token, alternatives in tokens
                ]
            }
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
            "logprobs": listed,
        }
        choice |= more
        usage = {"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 102}
        return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}

    def kill(self) -> None:
        """Nothing is answered from now on: new connections are refused, open ones are closed."""
        if not self._dead.is_set():
            self._dead.set()
            self._http.shutdown()
            self._http.server_close()


@pytest.fixture
def chat_server() -> Iterator[ChatServer]:
    """A fresh server; ``answer``, ``latency`` and what it was sent are at hand."""
    server = ChatServer()
    yield server
    server.kill()


CHARACTERS = [chr(code) for code in range(32, 127)] + ["\n"]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random GPT-2 of 2 layers over characters, as a checkpoint folder; text it does not know is ``<unk>``."""
    torch = pytest.importorskip("torch")
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    vocabulary = {character: i for i, character in enumerate(["<unk>", "<eos>", *CHARACTERS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    folder = tmp_path_factory.mktemp("tiny")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", eos_token="<eos>").save_pretrained(folder)
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=len(vocabulary), n_positions=2048, n_embd=32, n_layer=2, n_head=2, eos_token_id=1)
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama of one layer over bytes, as a GGUF file."""
    gguf = pytest.importorskip("gguf")
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    width, inner, heads = 32, 64, 2
    tokens = [b"<unk>", b"<s>", b"</s>"] + [f"<0x{byte:02X}>".encode() for byte in range(256)]
    tokens += ["▁".encode(), *(str(digit).encode() for digit in range(10))]
    kinds = [2, 3, 3] + [6] * 256 + [1] * 11
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(2048)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(width // heads)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    random = np.random.default_rng(0)

    def tensor(name: str, *shape: int) -> None:
        values = np.ones(shape) if len(shape) == 1 else random.normal(scale=0.3, size=shape)
        writer.add_tensor(name, values.astype(np.float32))

    tensor("token_embd.weight", len(tokens), width)
    tensor("output.weight", len(tokens), width)
    tensor("output_norm.weight", width)
    for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
        tensor(f"blk.0.{part}.weight", width, width)
    tensor("blk.0.ffn_gate.weight", inner, width)
    tensor("blk.0.ffn_up.weight", inner, width)
    tensor("blk.0.ffn_down.weight", width, inner)
    tensor("blk.0.attn_norm.weight", width)
    tensor("blk.0.ffn_norm.weight", width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
