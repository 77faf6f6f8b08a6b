"""Ask a back end for completions through a cache, and keep every raw reply as it arrives.

Each new reply is appended to a JSON Lines file and, where it is an answer, put into the cache at once: a run that is
killed, or whose server dies, loses no answered row, and the next run asks only for the rest.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from mdialeval.cache import Cache
from mdialeval.llm.protocol import ChatBackend, Completion, Prompt, StreamsReplies

log = logging.getLogger(__name__)

_REPORT_S = 10.0


class Asked(NamedTuple):
    """A completion and whether it came out of the cache."""

    completion: Completion
    cached: bool


def ask(
    backend: ChatBackend,
    prompts: Sequence[Prompt],
    *,
    cache: Cache,
    is_answer: Callable[[Prompt, Completion], bool],
    replies: Path | None = None,
) -> list[Asked]:
    """Complete prompts, each distinct request once; same length and order.

    Args:
        backend: asked only for what is not cached.
        prompts: equal requests are sent once.
        cache: of this back end (``cache.identity`` is the back end's).
        is_answer: whether a completion may be cached: failures and refusals are not.
        replies: a JSON Lines file that every new reply is appended to.

    Raises:
        BackendError: see ``ChatBackend.complete``; what was answered before is kept.
    """
    if backend.joined:
        return [Asked(completion, False) for completion in backend.complete(prompts)]
    requests = list(dict.fromkeys(prompts))
    found = cached(cache, requests)
    missing = [prompt for prompt in requests if prompt not in found]
    known = set(found)
    if replies is not None and missing:
        replies.parent.mkdir(parents=True, exist_ok=True)
    started = reported = time.monotonic()
    for done, (index, completion) in enumerate(_replies(backend, missing), start=1):
        prompt = missing[index]
        found[prompt] = completion
        if replies is not None:
            _append(replies, _line(backend.identity, prompt, completion))
        if is_answer(prompt, completion):
            cache.put([(prompt.request(), json.dumps(completion.values()))])
        if (now := time.monotonic()) - reported > _REPORT_S:
            reported = now
            log.info("%d of %d replies, %.1f a second", done, len(missing), done / (now - started))
    return [Asked(found[prompt], prompt in known) for prompt in prompts]


def cached(cache: Cache, prompts: Sequence[Prompt]) -> dict[Prompt, Completion]:
    """The completions among these prompts' that are cached."""
    values = cache.get([prompt.request() for prompt in prompts])
    return {p: Completion(**json.loads(v)) for p, v in zip(prompts, values, strict=True) if v is not None}


def _replies(backend: ChatBackend, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Completion]]:
    if not prompts:
        return iter(())
    if isinstance(backend, StreamsReplies):
        return backend.stream(prompts)
    return iter(enumerate(backend.complete(prompts)))


def _line(identity: str, prompt: Prompt, completion: Completion) -> dict[str, Any]:
    named = asdict(prompt.ask) if prompt.ask else {}
    return {**named, "sample": prompt.sample, "backend": identity, "request": prompt.request(), **completion.values()}


def _append(path: Path, line: dict[str, Any]) -> None:
    """One line in one write to a file opened for appending, so that several processes do not mix their lines."""
    with open(path, "ab", buffering=0) as stream:
        stream.write((json.dumps(line, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace"))
