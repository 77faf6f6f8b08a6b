"""The cache answers only for its own back end, in order, from several processes' files."""

from __future__ import annotations

import socket
from pathlib import Path

from mdialeval.cache import Cache, on_this_host


def test_values_come_back_in_order_and_by_identity(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with Cache(path, "engine-1") as cache:
        cache.put({f"text {i}": str(i) for i in range(1200)})
        assert cache.get(["text 7", "absent", "text 1199"]) == ["7", None, "1199"]
    with Cache(path, "engine-2") as other:
        assert other.get(["text 7"]) == [None]
    with Cache(path, "engine-1") as again:
        assert again.get([f"text {i}" for i in range(1200)]) == [str(i) for i in range(1200)]


def test_requests_can_be_json_and_odd_text() -> None:
    with Cache(None, "x") as cache:
        cache.put([({"b": 1, "a": 2}, "one"), ("😂 \ud800", "two")])
        assert cache.get([{"a": 2, "b": 1}, "😂 \ud800", ""]) == ["one", "two", None]


def test_every_machine_but_the_first_has_its_own_file(tmp_path: Path) -> None:
    path = tmp_path / "translate.sqlite"
    here = socket.gethostname()
    assert on_this_host(path, here) == path
    assert on_this_host(path, "elsewhere") == tmp_path / f"translate-{here}.sqlite"
