"""Errors, sorted by what the caller can do about them: fix, install, retry.

A user's mistake is one of these and is shown as a message without a traceback; anything else is ours and keeps its
traceback.  ``exit_code`` is what the command line returns.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


class MdialevalError(Exception):
    """Base of every error that a user can act on."""

    exit_code = 1

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors come back whole from worker processes, whatever their constructors take."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[MdialevalError], args: tuple[Any, ...], attributes: dict[str, Any]) -> MdialevalError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error


class ConfigError(MdialevalError):
    """The configuration is wrong.  ``problems`` holds every problem found, one sentence each."""

    exit_code = 2

    def __init__(self, problems: str | Sequence[str], path: str | Path | None = None) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        self.path = path
        where = f"{path}: " if path else ""
        if len(self.problems) == 1:
            message = where + self.problems[0]
        else:
            message = f"{where}{len(self.problems)} problems\n" + "\n".join(f"  - {p}" for p in self.problems)
        super().__init__(message)


class DataError(MdialevalError):
    """An input file is wrong.  The message names the file, the line or row, the field and the fix.

    Args:
        problem: what is wrong and how to mend it.
        path: the file.
        line: 1-based line (text formats) or data row, as a person would count it.
        field: the column or key.
    """

    exit_code = 3

    def __init__(
        self, problem: str, path: str | Path | None = None, line: int | None = None, field: str | None = None
    ) -> None:
        self.problem, self.path, self.line, self.field = problem, path, line, field
        where = ":".join(str(part) for part in (path, line) if part is not None)
        if field is not None:
            where += f" [{field}]" if where else f"[{field}]"
        super().__init__(f"{where}: {problem}" if where else problem)


class MissingExtraError(MdialevalError):
    """A back end needs a package that is not installed.  The message holds the exact pip line."""

    exit_code = 4

    def __init__(self, backend: str, package: str, extra: str | None) -> None:
        self.backend, self.package, self.extra = backend, package, extra
        line = f'pip install "mdialeval[{extra}]"' if extra else f"pip install {package}"
        super().__init__(f"{backend} needs the package {package!r}, which is not installed: {line}")


class ResumeError(MdialevalError):
    """Unfinished work cannot be continued.  The message says what differs and what to do."""

    exit_code = 5


class BackendError(MdialevalError):
    """An engine, model or endpoint failed.

    Args:
        backend: its name as written in the configuration.
        problem: what happened.
        retryable: whether the same call may succeed later.
        hint: what to do next.
    """

    exit_code = 6

    def __init__(self, backend: str, problem: str, *, retryable: bool = False, hint: str = "") -> None:
        self.backend, self.problem, self.retryable, self.hint = backend, problem, retryable, hint
        super().__init__(f"{backend}: {problem}" + (f" ({hint})" if hint else ""))


def nearest(word: str, known: Iterable[str], n: int = 3) -> str:
    """A did-you-mean clause for an unknown word, or the list of what is known where nothing is near.

    >>> nearest("fierfox", ["firefox", "apertium"])
    "did you mean 'firefox'?"
    >>> nearest("zzz", ["firefox", "apertium"])
    'known: apertium, firefox'
    """
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=n, cutoff=0.6)
    if close:
        return "did you mean " + " or ".join(repr(c) for c in close) + "?"
    return "known: " + ", ".join(names)
