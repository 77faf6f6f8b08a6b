"""What all tests share: the real data folder (skipped where absent) and offline model loading."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

ROOT = Path(__file__).resolve().parents[1]
SHARED_DATA = Path(os.environ.get("MDIALEVAL_SHARED_DATA", ROOT.parent / "shared" / "data"))


@pytest.fixture
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture
def shared_data() -> Path:
    """The folder of real public data; the test is skipped where it is absent."""
    if not SHARED_DATA.exists():
        pytest.skip(f"real data not found at {SHARED_DATA}")
    return SHARED_DATA
