"""GRADE (Huang et al., EMNLP 2020): coherence of responses in DailyDialog, ConvAI2 and EmpatheticDialogues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from pydantic.dataclasses import dataclass

from mdialeval.errors import DataError
from mdialeval.languages import canonical
from mdialeval.readers.grouping import Groups
from mdialeval.readers.labels import LabelCheck, Scale
from mdialeval.readers.opening import plain_lines
from mdialeval.readers.protocol import OPTIONS
from mdialeval.records import Example, Turn

CONTEXT, RESPONSE, SCORE = "human_ctx.txt", "human_hyp.txt", "human_score.txt"
BETWEEN_TURNS = "|||"


@dataclass(frozen=True, kw_only=True, config=OPTIONS)
class Grade:
    """Reads the folders ``eval_data/DATASET/MODEL`` and ``human_score/DATASET/MODEL`` (150 lines each).

    A path is one such folder of texts, or any folder above both.
    """

    language: str = "en"
    outside: Literal["error", "drop"] = "error"
    licence = "none stated"
    scales: ClassVar[Mapping[str, Scale]] = {"coherence": (1.0, 5.0)}

    def read(self, paths: Sequence[Path]) -> Iterator[Example]:
        """Stream the examples, folder by folder in the order of their names.

        Raises:
            DataError: a file that is missing, files of different length, a score outside 1 to 5.
        """
        language = canonical(self.language)
        for path in paths:
            found = sorted(path.rglob(CONTEXT)) if path.is_dir() else []
            if not found:
                raise DataError(f"no folder with a file {CONTEXT} here or below", path)
            by_dataset: dict[str, Groups] = {}
            for contexts in found:
                dataset = contexts.parent.parent.name
                groups = by_dataset.setdefault(dataset, Groups(dataset))
                yield from self._folder(contexts.parent, dataset, groups, language)

    def _folder(self, folder: Path, dataset: str, groups: Groups, language: str) -> Iterator[Example]:
        model, scores = folder.name, _scores(folder)
        files = [folder / CONTEXT, folder / RESPONSE, scores]
        columns = [[text for _, text in plain_lines(file)] for file in files]
        if len({len(column) for column in columns}) > 1:
            counts = ", ".join(f"{file.name} {len(column)}" for file, column in zip(files, columns, strict=True))
            raise DataError(f"the files have different numbers of lines ({counts}): rows would shift", folder)
        with LabelCheck(scores, self.scales, self.outside) as labels:
            for line, (context, response, score) in enumerate(zip(*columns, strict=True), start=1):
                turns = tuple(Turn(text.strip()) for text in context.split(BETWEEN_TURNS) if text.strip())
                if not turns or not response.strip():
                    raise DataError("a blank line; contexts and responses are paired line by line", folder, line)
                name, group = f"{dataset}-{model}-{line}", groups.of(tuple(turn.text for turn in turns))
                ratings = labels.values({"coherence": score}, line)
                yield Example(name, language, turns, Turn(response.strip()), ratings, group, model)


def _scores(folder: Path) -> Path:
    """The score file beside the texts, or in the tree of scores beside ``eval_data``."""
    beside = folder / SCORE
    dataset = folder.parent
    apart = dataset.parent.parent / "human_score" / dataset.name / folder.name / SCORE
    if not beside.exists() and not apart.exists():
        raise DataError(f"no {SCORE} here or in {apart.parent}", folder)
    return beside if beside.exists() else apart
