"""Apertium, the rule-based engine of Debian's packages, as one persistent pipeline a language pair.

A process a sentence manages a few sentences a second, a pipeline that flushes at NUL characters hundreds or more.
``apertium-wblank-mode -z MODE.mode`` prints such a pipeline as a shell command.  In it ``$1`` stands for the
generator (``-n``: unknown words unmarked) and ``$2`` for nothing.  The first stage flushes only after a blank, so
each unit ends in the superblank ``[END]``.

The tagger of ``eng-spa`` learns word classes as it goes: about one sentence in two hundred depends on those before it.
Pairs like that get a fresh pipeline every call, so that a call's result depends on its texts alone.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import select
import shutil
import signal
import subprocess
import threading
import unicodedata
import weakref
from collections.abc import Sequence
from pathlib import Path

from mdialeval.errors import BackendError, ConfigError
from mdialeval.languages import canonical
from mdialeval.registry import Asset
from mdialeval.segments import has_letters
from mdialeval.signature import fingerprint
from mdialeval.translate.protocol import Pairs

MODES = "/usr/share/apertium/modes"
_TOOL = "apertium-wblank-mode"
_FIX = (
    "apt-get install apertium apertium-eng-spa apertium-es-pt apertium-fr-es apertium-eng-cat apertium-fra-cat "
    "apertium-por-cat apertium-spa-ita apertium-en-gl apertium-pt-gl"
)
_POOR = frozenset({"hr", "sr", "bs", "mk", "sh"})
"""A third of the words stay unknown in these languages' packages: not offered."""
_STATEFUL = frozenset({("en", "es")})
_SPECIAL = re.compile(r"([\[\]{}^$/\\@<>])")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_END = "[END]"


class Apertium:
    """Translates with the language pairs that are installed on this machine.

    Args:
        modes: the folder of mode files.
        timeout: seconds without any output after which a pipeline counts as dead.
    """

    placeholders = True
    least_batch = 1024

    def __init__(self, modes: str = MODES, timeout: float = 120.0) -> None:
        self._modes = find_modes(modes)
        self._timeout = timeout
        self._pipelines: dict[Path, _Pipeline] = {}
        self._lock = threading.Lock()
        self.identity = f"apertium/{_fingerprint(tuple(sorted(self._modes.values())))}/1"

    @classmethod
    def assets(cls, modes: str = MODES, timeout: float = 120.0) -> list[Asset]:
        """The program that prints pipelines, and the installed pairs."""
        tool = shutil.which(_TOOL)
        listed = [Asset("apertium", "program", tool is not None, tool or "", "" if tool else _FIX, "GPL-3.0")]
        found = ", ".join(f"{s}-{t}" for s, t in sorted(find_modes(modes)))
        listed.append(
            Asset("apertium language pairs", "file", bool(found), found or modes, "" if found else _FIX, "GPL")
        )
        return listed

    @classmethod
    def pairs(cls, modes: str = MODES, timeout: float = 120.0) -> Pairs:
        """The installed pairs."""
        return frozenset(find_modes(modes))

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Translate sentences; see ``Translator``."""
        mode = self._modes.get((source, target))
        if mode is None:
            known = ", ".join(f"{s}-{t}" for s, t in sorted(self._modes)) or "no pair at all"
            raise ConfigError(f"apertium has no {source}-{target} on this machine; installed: {known}. {_FIX}")
        sent = [text for text in texts if has_letters(text)]
        if not sent:
            return list(texts)
        with self._lock:
            answers = iter(self._run(mode, sent, fresh=(source, target) in _STATEFUL))
        return [next(answers) if has_letters(text) else text for text in texts]

    def _run(self, mode: Path, texts: Sequence[str], fresh: bool) -> list[str]:
        if fresh and mode in self._pipelines:
            self._pipelines.pop(mode).close()
        pipeline = self._pipelines.get(mode)
        if pipeline is None:
            pipeline = self._pipelines[mode] = _Pipeline(_command(mode))
        units = [_encode(text) for text in texts]
        try:
            raw = pipeline.send([unit + _END for unit, _ in units], self._timeout)
        except BackendError:
            self._pipelines.pop(mode).close()
            raise
        return [_decode(r, added, text) for r, (_, added), text in zip(raw, units, texts, strict=True)]


class _Pipeline:
    """A running shell pipeline that answers NUL-ended units in order."""

    def __init__(self, command: str) -> None:
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
        self._finish = weakref.finalize(self, _end, self._process)

    def send(self, units: Sequence[str], timeout: float) -> list[str]:
        """The answers to some units; written by a thread, since the pipe fills up long before the last answer."""
        writer = threading.Thread(target=self._write, args=(units,), daemon=True)
        writer.start()
        output = self._process.stdout
        if output is None:  # never, with a pipe
            raise BackendError("apertium", "the pipeline has no output")
        received, missing = [], len(units)
        while missing > 0:
            if not select.select([output], [], [], timeout)[0]:
                raise BackendError("apertium", f"no answer for {timeout:g} seconds", retryable=True)
            block = os.read(output.fileno(), 1 << 16)
            if not block:
                done = len(units) - missing
                raise BackendError(
                    "apertium", f"a stage of the pipeline ended after {done} of {len(units)} sentences", retryable=True
                )
            received.append(block)
            missing -= block.count(b"\0")
        writer.join()
        return b"".join(received).decode("utf-8", "replace").split("\0")[: len(units)]

    def _write(self, units: Sequence[str]) -> None:
        stream = self._process.stdin
        if stream is None:  # never, with a pipe
            return
        try:
            for unit in units:
                stream.write(unit.encode("utf-8", "replace") + b"\0")
            stream.flush()
        except (BrokenPipeError, ValueError):
            return  # the reader sees the end of the output and says so

    def close(self) -> None:
        """End all stages."""
        self._finish()


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(BrokenPipeError):
            if stream is not None:
                stream.close()


def find_modes(folder: str = MODES) -> dict[tuple[str, str], Path]:
    """The installed modes by language pair; regional and historic variants are left out."""
    found: dict[tuple[str, str], Path] = {}
    for path in sorted(Path(folder).glob("*.mode")):
        names = path.stem.split("-")
        if len(names) != 2 or any(not re.fullmatch(r"[a-z]{2,3}", name) for name in names):
            continue
        try:
            source, target = canonical(names[0]), canonical(names[1])
        except ConfigError:
            continue
        if not {source, target} & _POOR:
            found.setdefault((source, target), path)
    return found


def _command(mode: Path) -> str:
    tool = shutil.which(_TOOL)
    if tool is None:
        raise BackendError("apertium", f"the program {_TOOL} is not installed", hint=_FIX)
    done = subprocess.run([tool, "-z", str(mode)], capture_output=True, text=True, check=False)
    if done.returncode != 0 or not done.stdout.strip():
        raise BackendError("apertium", f"{_TOOL} cannot read {mode}: {done.stderr.strip()}", hint=_FIX)
    return done.stdout.strip().replace("$1", "-n").replace("$2", "")


@functools.cache
def _fingerprint(modes: tuple[Path, ...]) -> str:
    """Changes with the pipelines and with the sizes of the files that they name."""
    parts: list[list[str | int]] = []
    for mode in modes:
        text = mode.read_text(encoding="utf-8")
        sizes: list[str | int] = [Path(p).stat().st_size for p in re.findall(r"'(/[^']+)'", text) if Path(p).exists()]
        parts.append([mode.name, text, *sizes])
    return fingerprint(parts)


def _encode(text: str) -> tuple[str, bool]:
    """A unit as the pipeline wants it, and whether a final full stop was added (the rules need one)."""
    text = unicodedata.normalize("NFC", text).replace("\0", " ").strip()
    added = text[-1:] not in ".!?…:;"
    escaped = _SPECIAL.sub(r"\\\1", text).replace("\n", "[\n]")
    return escaped + ("." if added else ""), added


def _decode(answer: str, added: bool, source: str) -> str:
    text = answer.strip()
    text = text[: -len(_END)] if text.endswith(_END) else text.replace(_END, "")
    text = _ESCAPED.sub(r"\1", text.replace("[\n]", "\n"))
    text = unicodedata.normalize("NFC", re.sub(r"[^\S\n]+", " ", text).strip())  # dropped pronouns leave double blanks
    if source[:1].isupper() and text[:1].islower():  # some pairs forget it at the beginning
        text = text[0].upper() + text[1:]
    return text[:-1].rstrip() if added and text.endswith(".") else text
