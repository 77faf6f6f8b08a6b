"""Sequence-to-sequence models of the Hugging Face hub: Marian/OPUS-MT, M2M100, NLLB, MADLAD-400 and their kin."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from mdialeval.errors import BackendError, ConfigError
from mdialeval.registry import Asset
from mdialeval.signature import folder_hash, version
from mdialeval.translate.seq2seq import Family, family_of, model_name, target_tokens

logger = logging.getLogger(__name__)


class TransformersTranslator:
    """Generates translations with beam search.

    Args:
        model: a hub name, a local folder, or a name with ``{source}`` and ``{target}`` in it, such as
            ``Helsinki-NLP/opus-mt-{source}-{target}``; or a mapping ``en-pt -> name``.
        beams: beam width; 1 is greedy search.
        max_tokens: source tokens a batch.  A batch holds sentences of one length, so that nothing is padded and no
            translation depends on its neighbours.
        max_length: tokens of the longest translation.
        device: ``cpu``, ``cuda`` (an error where there is none) or ``auto``.
        dtype: ``float32``, ``bfloat16`` or ``float16``.
        offline: never ask the hub.
        revision: the hub's revision.
    """

    placeholders = True

    def __init__(
        self,
        model: str | Mapping[str, str],
        beams: int = 4,
        max_tokens: int = 4096,
        max_length: int = 256,
        device: str = "auto",
        dtype: Literal["float32", "bfloat16", "float16"] = "float32",
        offline: bool = True,
        revision: str | None = None,
    ) -> None:
        self._model, self._beams, self._max_tokens, self._max_length = model, beams, max_tokens, max_length
        self._device, self._dtype, self._offline, self._revision = _device(device), dtype, offline, revision
        self._loaded: dict[str, tuple[Any, Any, Family]] = {}
        names = sorted(model.values()) if isinstance(model, Mapping) else [model]
        hashes = [f"{name}@{folder_hash(name) if Path(name).is_dir() else revision or 'main'}" for name in names]
        self.identity = (
            f"transformers/{version('transformers')}/{','.join(hashes)}/beams={beams},{dtype},max={max_length}/1"
        )

    @classmethod
    def assets(cls, model: str | Mapping[str, str] = "", offline: bool = True, **_: object) -> list[Asset]:
        """The checkpoints, looked for on this machine only."""
        names = sorted(model.values()) if isinstance(model, Mapping) else [model]
        return [checkpoint_asset(name, offline) for name in names]

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Translate sentences; see ``Translator``."""
        return self._generate(texts, source, target, {})

    def retry(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Translate again; no three tokens occur twice."""
        return self._generate(texts, source, target, {"no_repeat_ngram_size": 3, "repetition_penalty": 1.1})

    def _generate(self, texts: Sequence[str], source: str, target: str, extra: Mapping[str, Any]) -> list[str]:
        if not texts:
            return []
        tokenizer, model, family = self._load(model_name(self._model, source, target))
        tokens = target_tokens(family, tokenizer, source, target)
        if tokens.source is not None:
            tokenizer.src_lang = tokens.source
        prefixed = [f"{tokens.prefix}{text}" for text in texts]
        limit = min(int(getattr(model.config, "max_position_embeddings", None) or 1024), 1024)
        ids: list[list[int]] = tokenizer(prefixed, truncation=True, max_length=limit)["input_ids"]
        forced = {"forced_bos_token_id": tokens.forced} if tokens.forced is not None else {}
        answers = [""] * len(texts)
        for batch in _batches(ids, [i for i, text in enumerate(texts) if text.strip()], self._max_tokens):
            inputs = torch.tensor([ids[i] for i in batch], device=self._device)  # (B, T), all of one length
            longest = min(self._max_length, limit, 3 * inputs.shape[1] + 20)
            try:
                with torch.inference_mode():
                    made = model.generate(  # (B, T')
                        input_ids=inputs,
                        attention_mask=torch.ones_like(inputs),
                        num_beams=self._beams,
                        max_new_tokens=longest,
                        do_sample=False,
                        **forced,
                        **extra,
                    )
            except torch.OutOfMemoryError as error:
                hint = f"lower max_tokens (now {self._max_tokens}) or beams (now {self._beams})"
                raise BackendError("transformers", "out of memory", retryable=True, hint=hint) from error
            for i, text in zip(batch, tokenizer.batch_decode(made, skip_special_tokens=True), strict=True):
                answers[i] = text.strip()
        return answers

    def _load(self, name: str) -> tuple[Any, Any, Family]:
        if name not in self._loaded:
            there = {"local_files_only": self._offline or Path(name).is_dir(), "revision": self._revision or "main"}
            if Path(name).is_absolute() and not Path(name).is_dir():
                raise BackendError("transformers", f"cannot load {name!r}", hint=_hint(name))
            try:
                tokenizer = AutoTokenizer.from_pretrained(name, **there)  # type: ignore[no-untyped-call]
                model = AutoModelForSeq2SeqLM.from_pretrained(name, dtype=getattr(torch, self._dtype), **there)
            except (OSError, ValueError) as error:
                problem = f"cannot load {name!r}: {_first_line(error)}"
                raise BackendError("transformers", problem, hint=_hint(name)) from error
            self._loaded[name] = (tokenizer, model.to(self._device).eval(), family_of(model.config.model_type))
            logger.info("loaded %s on %s", name, self._device)
        return self._loaded[name]


def checkpoint_asset(name: str, offline: bool = True) -> Asset:
    """A checkpoint as an asset: a local folder, or a hub name that may lie in the hub's cache."""
    if "{" in name:
        fix = "set offline: false, or name a local folder" if offline else ""
        return Asset(name, "model", not offline, "hub", fix)
    if Path(name).is_dir():
        return Asset(name, "model", True, str(Path(name).resolve()))
    from huggingface_hub import constants, try_to_load_from_cache

    cached = (
        try_to_load_from_cache(name, "config.json") if name.count("/") <= 1 and not Path(name).is_absolute() else None
    )
    if isinstance(cached, str):
        return Asset(name, "model", True, str(Path(cached).parent))
    return Asset(name, "model", False, str(constants.HF_HUB_CACHE), _hint(name))


def _hint(name: str) -> str:
    if name.startswith(("/", ".", "~")):
        return "there is no such folder: mend the path, or give a hub name"
    return f"download it first: huggingface-cli download {name}; or give a local folder; or set offline: false"


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _device(name: str) -> str:
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError("transformers: device is cuda, but there is none: use auto or cpu")
    return name


def _batches(ids: Sequence[Sequence[int]], rows: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Row numbers in batches of one length and at most ``max_tokens`` (or one row)."""
    for length, group in itertools.groupby(sorted(rows, key=lambda i: len(ids[i])), key=lambda i: len(ids[i])):
        same = list(group)
        size = max(1, max_tokens // max(length, 1))
        for start in range(0, len(same), size):
            yield same[start : start + size]
