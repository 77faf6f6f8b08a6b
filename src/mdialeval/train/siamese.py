"""Siamese training: a pair and its paraphrase learn the same label, and are drawn together.

As in the DSTC11 companion of DialEvalML (Mendonca et al., 2023): the loss of the pair, that of the paraphrase, and a
term between the two: the squared difference of their scores, one minus the cosine of their vectors, or both.
A paraphrase is another response to the same context, from a file, or the same turn in another language.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from mdialeval.config.train import SiameseConfig
from mdialeval.errors import ConfigError, DataError
from mdialeval.readers.opening import csv_rows, json_rows, tsv_rows
from mdialeval.records import TrainingPair, Turn
from mdialeval.tasks.draws import normal

Term = Literal["scores", "vectors", "both"]
MADE = frozenset({"word_reorder", "word_drop", "word_repeat", "spliced"})
"""Kinds of negatives that are made in each language apart: they are no translations of each other."""
_READERS = {".csv": csv_rows, ".tsv": tsv_rows, ".jsonl": json_rows, ".json": json_rows}


def find_twins(pairs: Sequence[TrainingPair], config: SiameseConfig, home: str) -> list[TrainingPair | None]:
    """The paraphrase of each pair, None where there is none.

    Args:
        pairs: what is learned from.
        config: where paraphrases come from.
        home: language of the originals.

    Raises:
        DataError: no pair has one, or the file is broken.
    """
    if config.use == "translations":
        found = _translations(pairs, home)
    else:
        known = read_paraphrases(config, home)
        found = [
            None if text is None else replace(pair, response=Turn(text, pair.response.speaker))
            for pair in pairs
            for text in [known.get((pair.language, normal(pair.response.text)))]
        ]
    if not any(found):
        where = "no turn is there in two languages" if config.use == "translations" else f"none is in {config.path}"
        raise DataError(f"train.siamese: none of {len(pairs)} training pairs has a paraphrase ({where})")
    return found


def read_paraphrases(config: SiameseConfig, home: str) -> dict[tuple[str, str], str]:
    """(language, normal form of a text) -> its paraphrase, from a CSV, TSV or JSON Lines file; the first one counts.

    A row whose paraphrase is empty or says the same is skipped.

    Raises:
        ConfigError: no file is named, or one of another format.
        DataError: a row lacks a column.
    """
    if config.path is None:
        raise ConfigError("train.siamese.path: use: file needs a file with a column of texts and one of paraphrases")
    path = Path(config.path)
    if path.suffix not in _READERS:
        raise ConfigError(f"train.siamese.path: {path.name} is none of {', '.join(sorted(_READERS))}")
    found: dict[tuple[str, str], str] = {}
    for line, row in _rows(path):
        lacking = [name for name in (config.text, config.paraphrase) if not isinstance(row.get(name), str)]
        if lacking:
            fix = "name the column under train.siamese.text and .paraphrase"
            raise DataError(f"no text in this column ({fix}; columns here: {', '.join(row)})", path, line, lacking[0])
        text, paraphrase = row[config.text], row[config.paraphrase].strip()
        if paraphrase and normal(paraphrase) != normal(text):
            found.setdefault((row.get("language") or home, normal(text)), paraphrase)
    return found


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    if not path.exists():
        raise DataError("no such file; paths are relative to the YAML file or the working folder", path)
    return _READERS[path.suffix](path)  # type: ignore[return-value]


def _translations(pairs: Sequence[TrainingPair], home: str) -> list[TrainingPair | None]:
    """The same turn in the next language, in a circle; perturbed and drawn negatives say something else in each."""
    by_origin: dict[tuple[str, float], dict[str, int]] = {}
    origins: list[tuple[str, float] | None] = []
    for i, pair in enumerate(pairs):
        said = pair.source_id or (pair.id if pair.language == home else None)
        origin = (said, pair.label) if said is not None and (pair.label > 0.5 or pair.kind not in MADE) else None
        origins.append(origin)
        if origin is not None:
            by_origin.setdefault(origin, {}).setdefault(pair.language, i)
    found: list[TrainingPair | None] = []
    for pair, origin in zip(pairs, origins, strict=True):
        languages = sorted(by_origin[origin]) if origin is not None else []
        if origin is None or len(languages) < 2:
            found.append(None)
            continue
        following = languages[(languages.index(pair.language) + 1) % len(languages)]
        found.append(pairs[by_origin[origin][following]])
    return found


def drawn_together(outputs: tuple[Tensor, Tensor], vectors: tuple[Tensor, Tensor], term: Term) -> Tensor:
    """The term of each pair, (P,), not negative; 0 where pair and paraphrase are the same to the network.

    Args:
        outputs: (P,) scores of the pairs, and of their paraphrases.
        vectors: (P, D) sentence vectors of the pairs, and of their paraphrases.
        term: which differences count.

    >>> same, other = torch.tensor([0.5]), torch.tensor([0.9])
    >>> flat = torch.ones(1, 2)
    >>> [round(float(drawn_together((same, x), (flat, flat), "both")), 2) for x in (same, other)]
    [0.0, 0.16]
    """
    found = torch.zeros_like(outputs[0])
    if term != "vectors":
        found = found + (outputs[0] - outputs[1]).square()
    if term != "scores":
        found = found + 1 - torch.nn.functional.cosine_similarity(vectors[0].float(), vectors[1].float(), dim=1)
    return found


def content(twins: Sequence[TrainingPair | None]) -> list[Any]:
    """What the weights depend on, as JSON values."""
    return [t and [t.language, *(turn.text for turn in (*t.context, t.response))] for t in twins]
