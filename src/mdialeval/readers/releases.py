"""Known releases of corpora: how many rows a file has, and its SHA-256 where it was measured.

A reader that finds another number of rows in exactly this file is wrong: no number is made from it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from mdialeval.errors import DataError
from mdialeval.signature import file_hash

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Release:
    """One published file.

    Attributes:
        rows: data rows, without a header.
        size: bytes, or None where only the number of rows is known.
        sha256: the first 16 hexadecimal digits, or empty.
        scale: of its ratings, where it differs from the reader's.
    """

    rows: int
    size: int | None = None
    sha256: str = ""
    scale: tuple[float, float] | None = None


RELEASES: dict[str, Release] = {
    # DailyDialog++ (Sai et al., TACL 2020)
    "dailydialogpp/dev.json": Release(1028, 1226933, "afbdee92c9ab372f"),
    "dailydialogpp/test.json": Release(1142, 1326667, "e8202c3d4b11008a"),
    # untranslated DailyDialog context and response lines
    "valid_contexts.txt": Release(13105, 2128949, "73e5e2d8ef0635e0"),
    "valid_responses.txt": Release(13105, 799199, "6bd2802a5e624aba"),
    # xDial-Eval, turn level (Zhang et al., EMNLP Findings 2023)
    "dailydialog-zhao.csv": Release(900, 3178190, "6437c122af4aa3cb"),
    "dailydialog-grade.csv": Release(300, 684818, "6ced65497bbf80ed"),
    "dailydialog-gupta.csv": Release(500),
    "persona-usr.csv": Release(300, 2147865, "7739271a869453e0", (1.0, 3.0)),
    "persona-zhao.csv": Release(900),
    "convai2-grade.csv": Release(600),
    "empathetic-grade.csv": Release(300),
    "fed-turn.csv": Release(375),
    "conture-turn.csv": Release(1066),
    # MAIA-DQE (Mendonca et al., 2023)
    "de_client_01_turn.csv": Release(4809),
    "de_client_02_turn.csv": Release(1309, 695757, "937231ea642a1c41"),
    "pt_br_client_02_turn.csv": Release(2737),
    "pt_br_client_04_turn.csv": Release(469),
    "pt_pt_client_03_turn.csv": Release(361, 156485, "e4f89aee0cbd297e"),
    # holistic evaluation (Pang et al., ACL 2020)
    "context_data_release.csv": Release(200, 30767, "05456ad4832238c7"),
    "fluency_data_release.csv": Release(200, 17723, "6bc3c4795104e9d8"),
    # DialEvalML (Mendonca et al., SIGDIAL 2023)
    "DD_test_post_edits.csv": Release(300, 124896, "43c196bf9f632d24"),
}
"""File name (or folder/name where the name alone says little) -> what was published."""


def release_of(path: Path) -> Release | None:
    """The published file of this name, or None."""
    return RELEASES.get(path.name) or RELEASES.get(f"{path.parent.name}/{path.name}")


def check_rows(path: Path, rows: int) -> None:
    """Compare the rows read from a complete file with the known release.

    Raises:
        DataError: byte for byte the known release, yet another number of rows.
    """
    release = release_of(path)
    if release is None:
        return
    same = release.size == path.stat().st_size and file_hash(path, 16) == release.sha256
    if rows != release.rows and same:
        raise DataError(f"{rows} rows were read, but this release has {release.rows}: a wrong reader or option?", path)
    if not same and (release.sha256 or rows != release.rows):
        logger.warning(
            "%s: not the known release of that name (%d rows here, %d there): figures are not comparable",
            path,
            rows,
            release.rows,
        )
