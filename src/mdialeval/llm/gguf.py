"""A local GGUF model through llama.cpp (``xllamacpp``), in this process; the embedded Gemma 3 270M where none is named.

A base model continues a form that ends in the label of the score, so its score stands at one known position; a chat
model answers, and the score's position is looked for in its reply.
"""

from __future__ import annotations

import json
import logging
import mmap
from collections.abc import Iterator, Sequence
from math import exp
from pathlib import Path
from typing import Any, Literal
from urllib import request as http

import xllamacpp

from mdialeval.errors import BackendError, ConfigError
from mdialeval.llm.gemma import SHA256, embedded_model, embedded_model_asset
from mdialeval.llm.protocol import Completion, Finish, Prompt
from mdialeval.llm.tokens import Token, label_probabilities, score_labels, score_probabilities
from mdialeval.registry import Asset, package_asset
from mdialeval.signature import file_hash, version

log = logging.getLogger(__name__)

EMBEDDED = "embedded"
_METADATA = 64 << 20  # bytes within which the metadata end, vocabulary included
_TOP = 64  # alternatives asked for: score tokens below the 64th hold next to no probability


class GgufChat:
    """Runs a GGUF model on the CPU (or on a GPU, with an ``xllamacpp`` built for it).

    Args:
        path: a ``.gguf`` file, or ``embedded``.
        prompt_format: ``chat`` fills the model's own chat template (that of its family for the embedded base model),
            ``base`` continues a form; ``auto`` is chat where the file has a template and base elsewhere.
        temperature: 0 takes the likeliest token.
        max_tokens: longest reply.
        seed: of the sampling, plus the number of the repetition.
        context_tokens: window for prompt and reply.
        threads: CPU threads.
        reuse_prefix: keep what two prompts share at their beginning; faster, but the last digits of a probability then
            depend on the prompt before.
    """

    joined = False

    def __init__(
        self,
        path: str | Path = EMBEDDED,
        prompt_format: Literal["auto", "chat", "base"] = "auto",
        temperature: float = 0.0,
        max_tokens: int = 64,
        seed: int = 13,
        context_tokens: int = 4096,
        threads: int = 2,
        reuse_prefix: bool = False,
    ) -> None:
        if prompt_format not in ("auto", "chat", "base"):
            raise ConfigError(f"chat back end 'gguf': prompt_format is auto, chat or base, not {prompt_format!r}")
        embedded = str(path) == EMBEDDED
        if not embedded and not Path(path).expanduser().is_file():
            raise ConfigError(f"chat back end 'gguf': no file {path} (working folder: {Path.cwd()})")
        self._path = None if embedded else Path(path).expanduser()
        self._base = prompt_format == "base"
        if self._path is not None and prompt_format != "base" and not _has_chat_template(self._path):
            if prompt_format == "chat":
                raise ConfigError(f"chat back end 'gguf': {path} has no chat template: use prompt_format: base")
            self._base = True
        self._base = self._base or (prompt_format == "auto" and embedded)
        self._temperature, self._max_tokens, self._seed = temperature, max_tokens, seed
        self._window, self._threads, self._reuse = context_tokens, threads, reuse_prefix
        weights = SHA256[:12] if self._path is None else file_hash(self._path)
        self.identity = (
            f"backend:gguf|model:{weights}|xllamacpp:{version('xllamacpp')}|format:{'base' if self._base else 'chat'}|"
            f"temperature:{temperature:g}|max_tokens:{max_tokens}|seed:{seed}|window:{context_tokens}"
        )
        self._server: Any = None
        self._starts: dict[str, str] = {}

    @staticmethod
    def assets(path: str | Path = EMBEDDED, **_: Any) -> list[Asset]:
        """The engine and the model with its terms."""
        if str(path) == EMBEDDED:
            model = embedded_model_asset()
        else:
            there = Path(path).expanduser().is_file()
            model = Asset(Path(path).name, "model", there, str(path), "" if there else "put the file there")
        return [package_asset("xllamacpp"), model]

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """One completion a prompt.

        Raises:
            BackendError: llama.cpp cannot load the model.
        """
        found = dict(self.stream(prompts))
        return [found[i] for i in range(len(prompts))]

    def stream(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Completion]]:
        """Completions one after the other, in any order; see ``complete``."""
        if self._server is None:
            self._server = self._load()
        answer = self._continue if self._base else self._chat
        places: Sequence[int] = range(len(prompts))
        if self._reuse:  # neighbours share as much of their beginning as can be
            places = sorted(places, key=lambda i: (prompts[i].system, prompts[i].user))
        for place in places:
            yield place, answer(prompts[place])

    def _load(self) -> Any:
        path = embedded_model() if self._path is None else self._path
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(path)
        parameters.n_ctx, parameters.n_parallel = self._window, 1
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = self._threads
        parameters.warmup, parameters.verbosity = False, -1
        if self._path is None and not self._base:  # the base model's file has none, and llama.cpp would take another's
            parameters.chat_template, parameters.use_jinja = "gemma", False
        log.info("loading %s", path)
        try:
            return xllamacpp.Server(parameters)
        except RuntimeError as error:
            raise BackendError(
                "gguf", f"llama.cpp cannot load {path}: {error}", hint="is it a whole GGUF file?"
            ) from error

    def _sampling(self, prompt: Prompt) -> dict[str, Any]:
        seed = self._seed + prompt.sample
        return {"temperature": self._temperature, "seed": seed, "cache_prompt": self._reuse}

    def _continue(self, prompt: Prompt) -> Completion:
        """A base model's continuation of the form."""
        text = f"{prompt.system}\n\n{prompt.user}\n{self._start(prompt.answer)}"
        length = 1 if prompt.probabilities else self._max_tokens
        asked = {"prompt": text, "max_tokens": length, "stop": ["\n"], **self._sampling(prompt)}
        reply = self._server.handle_completions(asked | ({"logprobs": _TOP} if prompt.probabilities else {}))
        if failed := _failure(reply):
            return failed
        choice = reply["choices"][0]
        counts, finish = _counts(reply), _finish(choice)
        if not prompt.probabilities:
            return Completion(choice["text"], None, "", *counts, finish)
        tokens = _tokens(choice)
        if not tokens:  # the form was left at once
            return Completion(choice["text"], {}, "", *counts, finish)
        probabilities = label_probabilities(tokens[0].alternatives, score_labels(prompt.scale))
        return Completion(choice["text"], probabilities, "", *counts, "stop")

    def _chat(self, prompt: Prompt) -> Completion:
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
        asked = {"messages": messages, "max_tokens": self._max_tokens, **self._sampling(prompt)}
        if prompt.probabilities:
            asked |= {"logprobs": True, "top_logprobs": _TOP}
        reply = self._server.handle_chat_completions(asked)
        if failed := _failure(reply):
            return failed
        choice = reply["choices"][0]
        text = choice["message"]["content"] or ""
        found = score_probabilities(text, _tokens(choice), prompt.scale) if prompt.probabilities else None
        return Completion(text, found, "", *_counts(reply), _finish(choice))

    def _start(self, answer: str) -> str:
        """The answer's beginning, with a blank at its end where the model's digits are tokens without one."""
        if answer not in self._starts:
            pieces = self._pieces(f"{answer} 5")
            self._starts[answer] = f"{answer} " if pieces[-1] == "5" else answer
        return self._starts[answer]

    def _pieces(self, text: str) -> list[str]:
        """The tokens of a text, from the server that llama.cpp keeps on this machine's loopback address."""
        body = json.dumps({"content": text, "with_pieces": True}).encode()
        asked = http.Request(f"{self._server.listening_address}/tokenize", body, {"Content-Type": "application/json"})
        with http.build_opener(http.ProxyHandler({})).open(asked, timeout=30) as reply:
            return [str(token["piece"]) for token in json.load(reply)["tokens"]]


def _has_chat_template(path: Path) -> bool:
    """Whether a GGUF file's metadata, which stand before its tensors, hold a chat template."""
    if not path.stat().st_size:
        return False
    with open(path, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(b"tokenizer.chat_template", 0, min(len(content), _METADATA)) >= 0


def _failure(reply: dict[str, Any]) -> Completion | None:
    if "error" not in reply:
        return None
    problem = str(reply["error"].get("message", reply["error"]))
    too_long = reply["error"].get("type") == "exceed_context_size_error"
    return Completion(None, error=problem, finish="too_long" if too_long else "failed")


def _tokens(choice: dict[str, Any]) -> list[Token]:
    listed = (choice.get("logprobs") or {}).get("content") or []
    return [
        Token(t["token"], {t["token"]: exp(t["logprob"]), **{a["token"]: exp(a["logprob"]) for a in t["top_logprobs"]}})
        for t in listed
    ]


def _counts(reply: dict[str, Any]) -> tuple[int, int]:
    usage = reply.get("usage") or {}
    return int(usage.get("prompt_tokens", 0)), int(usage.get("completion_tokens", 0))


def _finish(choice: dict[str, Any]) -> Finish:
    return "length" if choice.get("finish_reason") == "length" else "stop"
