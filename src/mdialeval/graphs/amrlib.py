"""An ``amrlib`` parse model (BART or T5 to PENMAN), behind the same interface as every parser.

Text is split into sentences, white space collapsed, and what has no words is not sent: these models invent a graph for
an empty text and give one graph for several sentences.  ``None`` and ``()`` from the library are failures here, a
clipped sentence is said, and one bad sentence never harms the others.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mdialeval.errors import BackendError
from mdialeval.graphs.english import MAX_SENTENCES, english_problem, has_content, plain, sentences
from mdialeval.graphs.penman_codec import decode
from mdialeval.records import Graph
from mdialeval.registry import Asset, package_asset
from mdialeval.signature import folder_hash, version

log = logging.getLogger(__name__)

MODELS_PAGE = "https://github.com/bjascob/amrlib-models"
"""Where the released models are."""

_TOKENIZER_FILES = ("tokenizer.json", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "vocab.txt")


class AmrlibParser:
    """English turns to AMR by a released or own ``amrlib`` model.

    Args:
        model: folder of the model: ``amrlib_meta.json``, ``config.json`` and the weights.
        tokenizer: folder (or hub name) of the tokenizer; the released models come without one.  Default: the model's
            own folder where it holds one.
        device: such as ``cpu`` or ``cuda:0``; default: a GPU where there is one.
        num_beams: width of the beam search; the first beam that is a graph counts.
        batch_size: sentences a call of the model; changes speed only.

    Raises:
        BackendError: no such folder, no model in it, no tokenizer, or the library cannot load it.
    """

    def __init__(
        self,
        model: str | Path,
        tokenizer: str | Path | None = None,
        device: str | None = None,
        num_beams: int = 4,
        batch_size: int = 12,
    ) -> None:
        folder = Path(model).expanduser()
        problem = _folder_problem(folder, tokenizer)
        if problem is not None:
            raise BackendError("amrlib", problem[0], hint=problem[1])
        self._batch_size = batch_size
        self._stog = _load(folder, str(tokenizer or folder), device, num_beams, batch_size)
        self.identity = f"amrlib-{version('amrlib')}:{folder_hash(folder)}|beams-{num_beams}"

    @staticmethod
    def assets(model: str | Path = "", tokenizer: str | Path | None = None, **options: Any) -> list[Asset]:
        """The packages, the model folder and its tokenizer."""
        folder = Path(model).expanduser()
        problem = (
            _folder_problem(folder, tokenizer) if model else ("", f"give the model's folder as 'model': {MODELS_PAGE}")
        )
        return [
            package_asset("amrlib"),
            package_asset("unidecode"),
            Asset(
                "amrlib model", "model", problem is None, str(folder) if model else "", problem[1] if problem else ""
            ),
        ]

    def parse(self, texts: Sequence[str]) -> list[Graph]:
        """One graph a text, in order; several sentences are joined under ``multi-sentence``.

        Status ``truncated`` where a sentence was clipped to the model's length or only some sentences got a graph.
        """
        cleaned = [plain(text) for text in texts]
        problems = [english_problem(text) for text in cleaned]
        split = [
            sentences(text) if has_content(text) and not problem else []
            for text, problem in zip(cleaned, problems, strict=True)
        ]
        kept = [[part for part in parts[:MAX_SENTENCES] if has_content(part)] for parts in split]
        graphs = iter(self._parse_sentences([part for parts in kept for part in parts]))
        results = []
        for problem, parts, found in zip(problems, kept, split, strict=True):
            if problem:
                results.append(Graph("", -1, (), (), status="failed", detail=problem))
            elif not parts:
                results.append(Graph("", 0, ("amr-empty",), (), status="empty", detail="the text has no words"))
            else:
                left_out = max(0, len(found) - MAX_SENTENCES)
                results.append(_joined([next(graphs) for _ in parts], left_out))
        return results

    def _parse_sentences(self, parts: Sequence[str]) -> list[Graph]:
        """A graph a sentence; each distinct sentence is parsed once."""
        distinct = list(dict.fromkeys(parts))
        raw: dict[str, str | None] = {}
        for start in range(0, len(distinct), self._batch_size):
            batch = distinct[start : start + self._batch_size]
            raw.update(zip(batch, self._generate(batch), strict=True))
        return [self._graph(part, raw[part]) for part in parts]

    def _generate(self, batch: Sequence[str]) -> list[str | None]:
        """PENMAN of each sentence; a batch that fails is halved until the bad sentence stands alone."""
        try:
            return list(self._stog.parse_sents(list(batch), add_metadata=False))
        # What odd text or too little memory raises inside the library; anything else is a programmer's error.
        except (RuntimeError, ValueError, IndexError, KeyError, AssertionError, UnicodeError) as error:
            if len(batch) == 1:
                log.warning("amrlib: no graph for %r: %s", batch[0][:80], error)
                return [None]
            half = len(batch) // 2
            return self._generate(batch[:half]) + self._generate(batch[half:])

    def _graph(self, sentence: str, penman: str | None) -> Graph:
        if penman is None:
            return Graph("", -1, (), (), status="failed", detail="the model's output is not a graph")
        graph = decode(penman)
        if graph.status not in ("ok",):
            return Graph("", -1, (), (), status="failed", detail=f"the model's output is not a graph: {graph.detail}")
        length = len(self._stog.tokenizer(sentence)["input_ids"])
        if length > self._stog.max_sent_len:
            detail = f"{length} tokens clipped to {self._stog.max_sent_len}"
            return replace(graph, status="truncated", detail=detail)
        return graph


def _folder_problem(folder: Path, tokenizer: str | Path | None) -> tuple[str, str] | None:
    """(what is wrong, what to do) with a model folder, or None; nothing is loaded."""
    if not folder.is_dir():
        return f"no model folder {folder}", f"download and unpack a parse model from {MODELS_PAGE}"
    for name in ("amrlib_meta.json", "config.json"):
        if not (folder / name).is_file():
            return f"{folder} holds no {name}", f"unpack the whole archive of a parse model from {MODELS_PAGE}"
    base = _settings(folder)
    if base is None:
        return f"{folder}/config.json has no task_specific_params.parse_amr", "this is no parse (text to graph) model"
    if tokenizer is None and not any((folder / name).is_file() for name in _TOKENIZER_FILES):
        return (
            f"{folder} holds no tokenizer",
            f"save the tokenizer of {base.get('model_name_or_path', 'its base model')} into that folder, "
            "or give its folder or hub name as 'tokenizer'",
        )
    return None


def _settings(folder: Path) -> dict[str, Any] | None:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except ValueError:
        return None
    parameters = config.get("task_specific_params") or {}
    found = parameters.get("parse_amr") or parameters.get("translation_amr_to_text")
    return found if isinstance(found, dict) else None


def _load(folder: Path, tokenizer: str, device: str | None, num_beams: int, batch_size: int) -> Any:
    from amrlib.models.model_factory import load_inference_model

    options: dict[str, Any] = {"tok_name_or_path": tokenizer, "num_beams": num_beams, "batch_size": batch_size}
    if device is not None:
        options["device"] = device
    try:
        stog = load_inference_model(str(folder), **options)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        first = str(error).strip().splitlines()
        hint = f"give a local folder as 'tokenizer'; models: {MODELS_PAGE}"
        raise BackendError("amrlib", f"cannot load {folder}: {first[0] if first else error!r}", hint=hint) from error
    stog.model.generation_config.no_repeat_ngram_size = 0  # amrlib clears it in a place that generate() does not read
    return stog


def _joined(parts: Sequence[Graph], left_out: int) -> Graph:
    """The graphs of the sentences of a turn as one; what got no graph is counted in the detail."""
    good = [part for part in parts if part.status in ("ok", "truncated")]
    if not good:
        return parts[0]
    notes = [part.detail for part in good if part.status == "truncated"]
    if len(good) < len(parts):
        notes.append(f"{len(parts) - len(good)} of {len(parts)} sentences got no graph")
    if left_out:
        notes.append(f"{left_out} of {len(parts) + left_out} sentences left out")
    joined = good[0] if len(good) == 1 else _under_one_root(good)
    return replace(joined, status="truncated" if notes else "ok", detail="; ".join(notes))


def _under_one_root(parts: Sequence[Graph]) -> Graph:
    concepts = ["multi-sentence"]
    edges: list[tuple[int, str, int]] = []
    constants: list[int] = []
    for number, part in enumerate(parts, 1):
        shift = len(concepts)
        edges.append((0, f"snt{number}", part.top + shift))
        edges += [(s + shift, role, t + shift) for s, role, t in part.edges]
        constants += [i + shift for i in part.constants]
        concepts += part.concepts
    return Graph("", 0, tuple(concepts), tuple(edges), tuple(constants))
