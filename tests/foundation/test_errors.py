"""Errors survive the way back from a worker process."""

from __future__ import annotations

import pickle

import pytest

from mdialeval.errors import BackendError, ConfigError, DataError, MdialevalError, MissingExtraError, ResumeError

ERRORS = [
    ConfigError(["one", "two"], "c.yaml"),
    DataError("is empty", "d.jsonl", 3, "text"),
    MissingExtraError("engine 'x'", "x", "extra"),
    ResumeError("differs"),
    BackendError("x", "out of order", retryable=True, hint="wait"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_comes_back_whole(error: MdialevalError) -> None:
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert vars(found) == vars(error)
    assert found.exit_code == error.exit_code
