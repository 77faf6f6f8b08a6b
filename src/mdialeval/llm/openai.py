"""Any server that speaks the OpenAI chat protocol (OpenAI, vLLM, llama.cpp, Ollama), through the official client.

The key comes from an environment variable alone; it is neither logged nor written, and taken out of what a server
says.  The client's own retries are off: here one pause serves all threads, so that a server which says ``Retry-After``
is left alone by all of them.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from email.utils import parsedate_to_datetime
from math import exp
from typing import Any, Literal
from urllib.parse import urlsplit

import openai

from mdialeval.errors import BackendError, ConfigError
from mdialeval.llm.protocol import Completion, Finish, Prompt
from mdialeval.llm.tokens import Token, score_labels, score_probabilities
from mdialeval.registry import Asset, package_asset

log = logging.getLogger(__name__)

_PUBLIC = "https://api.openai.com/v1"
_TOO_LONG = ("context_length", "context length", "context size", "maximum context", "too many tokens", "too long")
_FINISH: dict[str, Finish] = {"length": "length", "content_filter": "refusal"}
_LONGEST_PAUSE_S = 60.0


class OpenAIChat:
    """Asks a server, several prompts at a time.

    Args:
        model: its name on the server.
        base_url: of the server, such as ``http://localhost:8000/v1``; OpenAI's where None.
        key_env: the environment variable that holds the key; a server of one's own needs none.
        temperature: None leaves it out of the request (some reasoning models refuse it).
        max_tokens: longest reply.
        token_limit: what the server calls that; chosen by the server where ``auto``.
        top_logprobs: alternatives asked for at each token, where probabilities are wanted (OpenAI allows 20).
        json_schema: ask for ``{"score": ...}`` by JSON schema.
        seed: sent with the request, plus the number of the repetition.
        concurrency: calls at a time.
        timeout: seconds for one call.
        retries: further tries after a rate limit, a time-out, a lost connection or a 5xx status; a row
            that has none left is a failure, and a server that cannot be reached any more stops the run.
        extra: more fields of the request body, such as ``{reasoning_effort: low}``.
    """

    joined = False

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        key_env: str = "OPENAI_API_KEY",
        temperature: float | None = 0.0,
        max_tokens: int = 64,
        token_limit: Literal["auto", "max_tokens", "max_completion_tokens"] = "auto",
        top_logprobs: int = 20,
        json_schema: bool = False,
        seed: int | None = None,
        concurrency: int = 8,
        timeout: float = 60.0,
        retries: int = 8,
        extra: dict[str, Any] | None = None,
    ) -> None:
        if concurrency < 1:
            raise ConfigError(f"chat back end 'openai': concurrency must be at least 1, not {concurrency}")
        if base_url is not None:
            _check_url(base_url)
        self._model, self._url, self._key_env = model, base_url, key_env
        self._temperature, self._max_tokens, self._seed = temperature, max_tokens, seed
        self._top, self._schema, self._extra = top_logprobs, json_schema, dict(extra or {})
        self._limit = token_limit
        if token_limit == "auto":
            self._limit = "max_completion_tokens" if base_url is None else "max_tokens"
        self._concurrency, self._timeout, self._retries = concurrency, timeout, retries
        settings = {"temperature": temperature, "max_tokens": max_tokens, "seed": seed, "top": top_logprobs}
        settings |= {"json": json_schema, **self._extra}
        self.identity = f"backend:openai|server:{base_url or _PUBLIC}|model:{model}|" + "|".join(
            f"{key}:{value}" for key, value in settings.items()
        )
        self._pause = _Pause()
        self._offers_probabilities = False
        self._client: openai.OpenAI | None = None
        self._key = ""

    @staticmethod
    def assets(base_url: str | None = None, key_env: str = "OPENAI_API_KEY", **_: Any) -> list[Asset]:
        """The client, the key and the endpoint; nothing is asked."""
        there = bool(os.environ.get(key_env))
        key = Asset(f"key in ${key_env}", "key", there, "environment" if there else "", f"export {key_env}=...")
        endpoint = Asset("chat endpoint", "endpoint", True, base_url or _PUBLIC)
        return [package_asset("openai"), endpoint, *([key] if there or base_url is None else [])]

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """One completion a prompt; a row that fails after all tries says why.

        Raises:
            ConfigError: OpenAI's own server, and no key.
            BackendError: the key or the model is refused, the quota is used up, the server is gone (retryable), or it
                does not send the probabilities that are wanted.
        """
        found = dict(self.stream(prompts))
        return [found[i] for i in range(len(prompts))]

    def stream(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Completion]]:
        """Completions as they arrive; see ``complete``.  What is under way when a call is refused still arrives."""
        client = self._connect()
        refused: BackendError | None = None
        pool = ThreadPoolExecutor(self._concurrency, thread_name_prefix="chat")
        try:
            futures: dict[Future[Completion], int] = {
                pool.submit(self._answer, client, prompt): i for i, prompt in enumerate(prompts)
            }
            for future in as_completed(futures):
                if future.cancelled():
                    continue
                try:
                    completion = future.result()
                except BackendError as error:
                    refused = refused or error
                    for other in futures:
                        other.cancel()
                    continue
                yield futures[future], completion
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        if refused is not None:
            raise refused

    def _connect(self) -> openai.OpenAI:
        if self._client is None:
            self._key = os.environ.get(self._key_env, "")
            if not self._key and self._url is None:
                raise ConfigError(f"chat back end 'openai' needs a key: export {self._key_env}=...")
            # A server that sends head and body apart waits 40 ms for an acknowledgement on a connection that is used
            # again, but not on a new one, which costs next to nothing where there is no encryption.
            headers = {"Connection": "close"} if (self._url or _PUBLIC).startswith("http:") else {}
            self._client = openai.OpenAI(
                api_key=self._key or "none",
                base_url=self._url,
                max_retries=0,
                timeout=self._timeout,
                default_headers=headers,
            )
        return self._client

    def _answer(self, client: openai.OpenAI, prompt: Prompt) -> Completion:
        """One prompt, tried again while trying may help."""
        request = self._request(prompt)
        for attempt in range(self._retries + 1):
            self._pause.wait()
            try:
                return self._completion(client.chat.completions.create(**request), prompt)
            except openai.APIStatusError as error:
                if not _is_passing(error):
                    return self._refused(error)
                problem, wait = self._status(error), _retry_after(error)
            except openai.APITimeoutError:
                problem, wait = f"no reply within {self._timeout:g} s", None
            except openai.APIConnectionError as error:
                if attempt == self._retries:
                    gone = self._clean(f"no connection to {self._url or _PUBLIC}: {error}")
                    hint = "what was answered is kept; start again to ask for the rest"
                    raise BackendError("openai", gone, retryable=True, hint=hint) from error
                problem, wait = "", None
            if attempt < self._retries:
                self._pause.at_least(wait if wait is not None else _backoff(attempt), shared=wait is not None)
        return Completion(None, error=problem, finish="failed")

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
        request: dict[str, Any] = {"model": self._model, "messages": messages, self._limit: self._max_tokens}
        if self._temperature is not None:
            request["temperature"] = self._temperature
        if self._seed is not None:
            request["seed"] = self._seed + prompt.sample
        if prompt.probabilities:
            request |= {"logprobs": True, "top_logprobs": self._top}
        if self._schema:
            request["response_format"] = _schema(prompt.scale)
        if self._extra:
            request["extra_body"] = self._extra
        return request

    def _completion(self, reply: Any, prompt: Prompt) -> Completion:
        usage = getattr(reply, "usage", None)
        counts = (getattr(usage, "prompt_tokens", 0) or 0, getattr(usage, "completion_tokens", 0) or 0)
        if not getattr(reply, "choices", None):
            return Completion(None, None, "the server sent no choice", *counts, "failed")
        choice = reply.choices[0]
        text = choice.message.content or ""
        finish: Finish = _FINISH.get(choice.finish_reason or "", "stop")
        if getattr(choice.message, "refusal", None):
            return Completion(choice.message.refusal, None, "", *counts, "refusal")
        if not prompt.probabilities or finish == "refusal":
            return Completion(text, None, "", *counts, finish)
        listed = getattr(choice.logprobs, "content", None)
        if not listed:
            if not self._offers_probabilities:  # every further call would be paid for in vain
                hint = "use mode number or samples, or a server that offers logprobs"
                raise BackendError("openai", "the server sent no token probabilities", hint=hint)
            return Completion(text, None, "the server sent no token probabilities", *counts, "no_probabilities")
        self._offers_probabilities = True
        tokens = [Token(t.token, _alternatives(t)) for t in listed]
        return Completion(text, score_probabilities(text, tokens, prompt.scale), "", *counts, finish)

    def _refused(self, error: openai.APIStatusError) -> Completion:
        """A status that trying again does not change: this row's fault, or everybody's."""
        problem = self._status(error)
        if error.status_code in (400, 413, 422):
            too_long = any(mark in problem.lower() for mark in _TOO_LONG)
            return Completion(None, error=problem, finish="too_long" if too_long else "failed")
        hint = {
            401: f"check the key in ${self._key_env}",
            403: f"the key in ${self._key_env} may not use this model",
            404: "check model and base_url",
            429: "the quota is used up",
        }.get(error.status_code, "")
        raise BackendError("openai", problem, retryable=False, hint=hint)

    def _status(self, error: openai.APIStatusError) -> str:
        return self._clean(f"status {error.status_code}: {error.message}")

    def _clean(self, text: str) -> str:
        """A message without the key, however the server came to repeat it."""
        return " ".join((text.replace(self._key, "***") if self._key else text).split())[:500]


class _Pause:
    """When the server may be asked again; one clock for all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until = 0.0
        self._own = threading.local()

    def wait(self) -> None:
        while True:
            with self._lock:
                until = max(self._until, getattr(self._own, "until", 0.0))
            if (left := until - time.monotonic()) <= 0:
                return
            time.sleep(left)

    def at_least(self, seconds: float, *, shared: bool) -> None:
        """Pause this thread, or all of them where the server named the time."""
        until = time.monotonic() + seconds
        self._own.until = until
        if shared:
            with self._lock:
                self._until = max(self._until, until)


def _backoff(attempt: int) -> float:
    """0.5 s, 1 s, 2 s ... at most a minute, less up to a half so that threads come apart."""
    return float(min(_LONGEST_PAUSE_S, 0.5 * 2**attempt) * random.uniform(0.5, 1.0))


def _is_passing(error: openai.APIStatusError) -> bool:
    """Whether the same call may succeed later; a used-up quota also says 429."""
    if error.status_code == 429:
        return getattr(error, "code", None) != "insufficient_quota"
    return error.status_code in (408, 409, 425) or error.status_code >= 500


def _retry_after(error: openai.APIStatusError) -> float | None:
    """Seconds that the server asks to wait, from ``Retry-After`` (seconds or a date) or ``retry-after-ms``."""
    headers = error.response.headers
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        if not (text := headers.get("retry-after")):
            return None
        if text.replace(".", "", 1).isdigit():
            return float(text)
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError):
        log.debug("unreadable Retry-After header")
        return None


def _alternatives(token: Any) -> dict[str, float]:
    listed = {a.token: exp(a.logprob) for a in token.top_logprobs or []}
    return {token.token: exp(token.logprob), **listed}


def _schema(scale: tuple[float, float]) -> dict[str, Any]:
    try:
        score: dict[str, Any] = {"type": "integer", "enum": [int(label) for label in score_labels(scale)]}
    except ConfigError:  # not a scale of single digits
        score = {"type": "number"}
    schema = {"type": "object", "properties": {"score": score}, "required": ["score"], "additionalProperties": False}
    return {"type": "json_schema", "json_schema": {"name": "rating", "strict": True, "schema": schema}}


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ConfigError("chat back end 'openai': base_url must be an address such as http://localhost:8000/v1")
    if parts.username or parts.password:
        raise ConfigError("chat back end 'openai': base_url must hold no user name or password: use key_env")
