"""How far an exported evaluator's scores are from the original's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from mdialeval.errors import BackendError, DataError
from mdialeval.files import replace_atomically
from mdialeval.records import Prediction

TOLERANCE = 1e-4


class Equality(NamedTuple):
    """How far an exported evaluator is from the original.

    Attributes:
        rows: examples that both scored.
        languages: of these.
        largest: largest absolute difference of a score.
    """

    rows: int
    languages: tuple[str, ...]
    largest: float

    @property
    def sentence(self) -> str:
        """For the model card.

        >>> Equality(20, ("de", "en"), 3e-7).sentence
        "On 20 rows (de, en) its scores differ from the original's by at most 3.0e-07 (float32, CPU)."
        """
        return (
            f"On {self.rows} rows ({', '.join(self.languages)}) its scores differ from the original's by at most "
            f"{self.largest:.1e} (float32, CPU)."
        )


def compare(backend: str, expected: Sequence[Prediction], found: Sequence[Prediction]) -> Equality:
    """Compare the scores of the same examples.

    Raises:
        DataError: none of them has a score.
        BackendError: a score differs by more than ``TOLERANCE``, or only one side has one.
    """
    if changed := [a.example_id for a, b in zip(expected, found, strict=True) if a.status != b.status]:
        raise BackendError(backend, f"the status of example {changed[0]!r} changed")
    pairs = [
        (one.language, abs(one.score - two.score))
        for one, two in zip(expected, found, strict=True)
        if one.score is not None and two.score is not None
    ]
    if not pairs:
        raise DataError("none of the rows to compare scores on can be scored: give rows with responses")
    equality = Equality(len(pairs), tuple(sorted({language for language, _ in pairs})), max(gap for _, gap in pairs))
    if not equality.largest <= TOLERANCE:
        raise BackendError(
            backend,
            f"scores differ from the original's by up to {equality.largest:.2g} (at most {TOLERANCE:g} is allowed)",
            hint="try another version of torch, transformers or onnxruntime",
        )
    return equality


def write_card(folder: Path, target: Path, more: str) -> None:
    """The evaluator's model card with a part about the export."""
    text = (folder / "README.md").read_text(encoding="utf-8") + more

    def put(stream: BinaryIO) -> None:
        stream.write(text.encode())

    replace_atomically(target / "README.md", put)
