"""The same checkpoints through CTranslate2: converted once into the user's cache, int8 on CPUs, float16 on GPUs."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ctranslate2

from mdialeval.errors import BackendError, ConfigError
from mdialeval.registry import Asset, package_asset
from mdialeval.signature import fingerprint, folder_hash, version
from mdialeval.translate.seq2seq import Family, family_of, model_name, target_tokens

logger = logging.getLogger(__name__)


class CTranslate2Translator:
    """Fast inference for Marian, M2M100, NLLB and MADLAD checkpoints.

    Args:
        model: as for ``transformers``: a hub name, a local folder, a pattern, or a mapping ``en-pt -> name``.
        beams: beam width.
        max_tokens: source tokens a batch.
        max_length: tokens of the longest translation.
        device: ``cpu``, ``cuda`` or ``auto``.
        compute_type: ``auto`` is int8 on CPUs and float16 on GPUs.
        threads: CPU threads; 0 = CTranslate2's default.
        offline: never ask the hub.
        cache_dir: where conversions are kept; the user's cache folder where None.
    """

    placeholders = True

    def __init__(
        self,
        model: str | Mapping[str, str],
        beams: int = 4,
        max_tokens: int = 2048,
        max_length: int = 256,
        device: str = "auto",
        compute_type: str = "auto",
        threads: int = 0,
        offline: bool = True,
        cache_dir: str | Path | None = None,
    ) -> None:
        self._model, self._beams, self._max_tokens, self._max_length = model, beams, max_tokens, max_length
        self._device = _device(device)
        self._type = compute_type if compute_type != "auto" else "int8" if self._device == "cpu" else "float16"
        self._threads, self._offline = threads, offline
        self._cache = Path(cache_dir).expanduser() if cache_dir else _user_cache()
        self._loaded: dict[str, tuple[Any, Any, Family]] = {}
        names = sorted(model.values()) if isinstance(model, Mapping) else [model]
        hashes = [f"{name}@{folder_hash(name) if Path(name).is_dir() else 'main'}" for name in names]
        self.identity = (
            f"ctranslate2/{version('ctranslate2')}/{','.join(hashes)}/beams={beams},{self._type},max={max_length}/1"
        )

    @classmethod
    def assets(cls, model: str | Mapping[str, str] = "", offline: bool = True, **_: object) -> list[Asset]:
        """The package and the checkpoints that are converted."""
        from mdialeval.translate.transformers import checkpoint_asset

        names = sorted(model.values()) if isinstance(model, Mapping) else [model]
        return [package_asset("ctranslate2"), *(checkpoint_asset(name, offline) for name in names)]

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Translate sentences; see ``Translator``."""
        return self._generate(texts, source, target, {})

    def retry(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Translate again; no three tokens occur twice."""
        return self._generate(texts, source, target, {"no_repeat_ngram_size": 3, "repetition_penalty": 1.1})

    def _generate(self, texts: Sequence[str], source: str, target: str, extra: Mapping[str, Any]) -> list[str]:
        tokenizer, engine, family = self._load(model_name(self._model, source, target))
        tokens = target_tokens(family, tokenizer, source, target)
        if tokens.source is not None:
            tokenizer.src_lang = tokens.source
        rows = [i for i, text in enumerate(texts) if text.strip()]
        if not rows:
            return [""] * len(texts)
        encoded = tokenizer([f"{tokens.prefix}{texts[i]}" for i in rows], truncation=True, max_length=1024)["input_ids"]
        pieces = [tokenizer.convert_ids_to_tokens(ids) for ids in encoded]
        prefix = [[tokens.target]] * len(pieces) if tokens.target is not None else None
        try:
            results = engine.translate_batch(
                pieces,
                target_prefix=prefix,
                beam_size=self._beams,
                max_batch_size=self._max_tokens,
                batch_type="tokens",
                max_decoding_length=self._max_length,
                **extra,
            )
        except RuntimeError as error:  # CTranslate2 raises nothing finer: out of memory, a bad device
            raise BackendError("ctranslate2", str(error), retryable=True, hint="lower max_tokens or beams") from error
        skip = 0 if prefix is None else 1
        answers = [""] * len(texts)
        for i, result in zip(rows, results, strict=True):
            ids = tokenizer.convert_tokens_to_ids(result.hypotheses[0][skip:])
            answers[i] = tokenizer.decode(ids, skip_special_tokens=True).strip()
        return answers

    def _load(self, name: str) -> tuple[Any, Any, Family]:
        if name not in self._loaded:
            from transformers import AutoConfig, AutoTokenizer

            there = {"local_files_only": self._offline or Path(name).is_dir()}
            try:
                tokenizer = AutoTokenizer.from_pretrained(name, **there)  # type: ignore[no-untyped-call]
                family = family_of(AutoConfig.from_pretrained(name, **there).model_type)
            except (OSError, ValueError) as error:
                hint = f"download it first: huggingface-cli download {name}; or give a local folder"
                raise BackendError("ctranslate2", f"cannot load {name!r}", hint=hint) from error
            folder = self._convert(name)
            options = {"intra_threads": self._threads} if self._threads else {}
            engine = ctranslate2.Translator(str(folder), device=self._device, compute_type=self._type, **options)
            self._loaded[name] = (tokenizer, engine, family)
        return self._loaded[name]

    def _convert(self, name: str) -> Path:
        """The converted checkpoint; made once, under a temporary name, and renamed when whole."""
        content = folder_hash(name) if Path(name).is_dir() else name
        key = fingerprint([content, self._type, version("ctranslate2")])
        folder = self._cache / f"{Path(name).name}-{self._type}-{key}"
        if (folder / "model.bin").exists():
            return folder
        self._cache.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".converting-", dir=self._cache))
        try:
            logger.info("converting %s to CTranslate2 (%s), once", name, self._type)
            converter = ctranslate2.converters.TransformersConverter(name, low_cpu_mem_usage=False)
            converter.convert(str(temporary), quantization=self._type, force=True)
            temporary.chmod(0o755)
            try:
                temporary.rename(folder)
            except OSError:  # another process was faster
                if not (folder / "model.bin").exists():
                    raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        return folder


def _device(name: str) -> str:
    there = ctranslate2.get_cuda_device_count() > 0
    if name == "auto":
        return "cuda" if there else "cpu"
    if name.startswith("cuda") and not there:
        raise ConfigError("ctranslate2: device is cuda, but there is none: use auto or cpu")
    return name


def _user_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "mdialeval" / "ctranslate2"
