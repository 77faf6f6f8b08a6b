"""``export``: a trained evaluator as a folder for other tools, with a check that its scores are the same."""

from __future__ import annotations

from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from mdialeval.config.corpus import Source
from mdialeval.errors import ConfigError, DataError, nearest
from mdialeval.readers import read
from mdialeval.records import Example

Format = Literal["onnx", "huggingface"]
FORMATS: tuple[Format, ...] = ("onnx", "huggingface")
ROWS = 200


class Exported(NamedTuple):
    """What an export yielded.

    Attributes:
        folder: where it lies.
        size: bytes of all its files.
        rows, languages: on which scores were compared.
        largest: largest absolute difference of a score from the original's, both in float32.
    """

    folder: Path
    size: int
    rows: int
    languages: tuple[str, ...]
    largest: float


def export(folder: Path, target: Path, to: str, rows: Path | None = None, reader: str = "jsonl") -> Exported:
    """Write an evaluator for other tools and compare its scores with the original's in float32.

    Args:
        folder: of ``train``.
        target: a folder of its own.
        to: ``onnx`` for onnxruntime, or ``huggingface`` for ``AutoModel`` and ``AutoTokenizer``.
        rows: rated examples whose scores are compared, the first 200; a few lines in nine languages where None.
        reader: of that file.

    Raises:
        ConfigError: unknown format, or the evaluator holds what the format cannot express.
        DataError: no evaluator in the folder, or no rows to compare.
        BackendError: the scores differ.
    """
    if to not in FORMATS:
        raise ConfigError(f"cannot export to {to!r}: {nearest(to, FORMATS)}")
    if target.resolve() == folder.resolve():
        raise ConfigError(f"{target} is the evaluator itself: name another folder as output")
    examples = _examples(rows, reader)
    if to == "onnx":
        from mdialeval.model.onnx_graph import export_onnx as write
    else:
        from mdialeval.model.standalone import export_standalone as write
    equality = write(folder, target, examples)
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    return Exported(target, size, *equality)


def _examples(rows: Path | None, reader: str) -> list[Example]:
    if rows is None:
        with resources.as_file(resources.files("mdialeval.model") / "equality_rows.jsonl") as path:
            items = list(read(Source.model_validate({"path": path})))
    else:
        items = list(islice(read(Source.model_validate({"reader": reader, "path": rows})), ROWS))
    found = [item for item in items if isinstance(item, Example)]
    if not found:
        raise DataError("holds dialogues without rated responses: name a file of rated examples", rows)
    return found
