"""How probable a causal language model finds a text: any checkpoint of transformers, or a GGUF file unpacked once.

The embedded model is Gemma 3 270M; its 4-bit weights are written out as an ordinary checkpoint folder in 16 bits, since
llama.cpp gives probabilities of what it writes and none of what it reads.
"""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from sentencepiece import SentencePieceProcessor
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

from mdialeval.assets import cache_folder, encoder_assets
from mdialeval.devices import choose_device
from mdialeval.errors import BackendError, ConfigError, MissingExtraError, nearest
from mdialeval.llm.gemma import SHA256, TERMS, embedded_model, embedded_model_asset
from mdialeval.registry import EXTRA_OF, Asset, package_asset
from mdialeval.signature import file_hash, folder_hash
from mdialeval.unpacked import intact, unpack

log = logging.getLogger(__name__)

EMBEDDED = "embedded"
_WHAT = "causal language model"
_GGUF = "gguf"
_TOKENIZER = "tokenizer.model"
_PLACES = 256  # tokens at a time: 270 MB of logits with a vocabulary of 262,144


@dataclass(frozen=True, slots=True)
class CausalLM:
    """A loaded model.

    Attributes:
        model: in eval mode, float32, on its device.
        encode: text -> token ids, no special ones.
        start: ids before every text.
        window: tokens that fit.
    """

    model: Any
    encode: Callable[[str], list[int]]
    start: tuple[int, ...]
    window: int


def identity(name: str) -> str:
    """What stands for a model in signatures, without loading it.

    Raises:
        ConfigError: neither a name nor a file or folder that is there.
    """
    if name == EMBEDDED:
        return f"{EMBEDDED}@{SHA256[:12]}"
    path = local_path(name)
    return f"{path.name}@{folder_hash(path)}" if path else name


def local_path(name: str) -> Path | None:
    """The file or folder that a model's name stands for; None for the embedded one and for names on the hub.

    Raises:
        ConfigError: there is no such file or folder, the folder is no checkpoint, or ``embedded`` is misspelt.
    """
    path = Path(name).expanduser()
    if name == EMBEDDED:
        return None
    if path.is_file() or (path / "config.json").is_file():
        return path
    if path.is_dir():
        raise ConfigError(
            f"causal language model {name!r}: the folder holds no config.json: name a checkpoint folder or a .gguf file"
        )
    if name.startswith((".", "/", "~")) or len(path.parts) > 2 or path.suffix == ".gguf":
        raise ConfigError(f"causal language model {name!r}: no such file or folder (working folder: {Path.cwd()})")
    if "/" not in name and (near := nearest(name, [EMBEDDED])).startswith("did you mean"):
        raise ConfigError(f"unknown causal language model {name!r}: {near}")
    return None


def causal_assets(name: str) -> list[Asset]:
    """What a model needs and whether it is on this machine; nothing is unpacked, loaded or asked for.

    Raises:
        ConfigError: see ``local_path``.
    """
    path = local_path(name)
    if name == EMBEDDED:
        if intact(_embedded_folder()):
            return [Asset("Gemma 3 270M, 16-bit", "model", True, str(_embedded_folder()), licence=TERMS)]
        return [embedded_model_asset(), package_asset(_GGUF)]
    listed = [package_asset(_GGUF)] if path and path.is_file() else []
    if path:
        return [Asset(f"{_WHAT} {name}", "model", True, str(path.resolve())), *listed]
    return encoder_assets(name, _WHAT)


def load_causal(name: str, device: str = "auto") -> CausalLM:
    """A causal language model.

    Args:
        name: ``embedded``, a ``.gguf`` file, a checkpoint folder, or a name on the hub.
        device: ``auto``, ``cpu``, ``cuda`` ...

    Raises:
        BackendError: it cannot be loaded.
        ConfigError: there is no such model, or the checkpoint has no language-model head.
        MissingExtraError: a package that carries or reads the weights is not installed.
    """
    path = local_path(name)
    where = name if path is None else str(path)
    if name == EMBEDDED:
        where = str(_unpacked(_embedded_folder(), embedded_model, TERMS))
    elif path is not None and path.is_file():
        file = path
        where = str(_unpacked(cache_folder() / f"{file.stem}-{file_hash(file)}-f16", lambda: file, ""))
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(where, dtype=torch.float32, output_loading_info=True)
        model, info = loaded
        settings = model.config.get_text_config()  # its own, but for models that also see or hear
        encode, start = _tokenizer(where, settings.bos_token_id)
    except (OSError, ValueError, SafetensorError) as error:
        hint = "name a checkpoint folder, a .gguf file or a model on the hub"
        hint += "" if path or name == EMBEDDED else f", which `huggingface-cli download {name}` brings"
        raise BackendError("likelihood", str(error).partition("\n")[0], hint=hint) from error
    _check_head(model, info["missing_keys"], name)
    window = int(getattr(settings, "max_position_embeddings", None) or 1024)
    return CausalLM(model.to(choose_device(device)).eval(), encode, start, window)


def _embedded_folder() -> Path:
    return cache_folder() / f"gemma3-270m-{SHA256[:8]}-f16"


def _check_head(model: Any, missing: Sequence[str], name: str) -> None:
    """Refuse a checkpoint whose output weights would be drawn at random; tied ones are there under another name."""
    head = model.get_output_embeddings()
    names = {key for key, weight in model.named_parameters(remove_duplicate=False) if head and weight is head.weight}
    if names and names.issubset(missing):
        raise ConfigError(f"{_WHAT} {name!r} has no language-model head ({', '.join(sorted(names))}): name another")


def _tokenizer(where: str, start: int | None) -> tuple[Callable[[str], list[int]], tuple[int, ...]]:
    """Text to ids, and the ids that every text starts with; ``start`` is what the model's configuration says."""
    if start is not None and (path := Path(where) / _TOKENIZER).is_file() and intact(Path(where)):
        return SentencePieceProcessor(model_file=str(path)).encode, (start,)
    tokenizer: Any = AutoTokenizer.from_pretrained(where)  # type: ignore[no-untyped-call]
    first = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
    if first is None:
        raise ConfigError(f"causal language model {where}: its tokenizer has no token to start a text with")

    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer(text, add_special_tokens=False, split_special_tokens=True, verbose=False)[
            "input_ids"
        ]
        return ids

    return encode, (first,)


@torch.inference_mode()
def log_probabilities(
    model: Any, before: Sequence[int], texts: Sequence[Sequence[int]], batch_size: int
) -> list[Tensor]:
    """ln P of every token of each text, which all follow the same tokens; that prefix is read once.

    Args:
        model: a causal language model in eval mode.
        before: ids of the prefix, at least one.
        texts: ids; none of them empty.
        batch_size: texts at a time, fewer where they are long.

    Returns:
        (len(text),) float32 each, at most 0, in the order of ``texts``.

    Raises:
        BackendError: the model does not read on from a prefix, as encoders and recurrent models do not.
    """
    ids = torch.tensor([list(before)], device=model.device)
    # Some models do not know the option, and some of these take it without a word: the last place is chosen below.
    last = {"logits_to_keep": 1} if "logits_to_keep" in inspect.signature(model.forward).parameters else {}
    read = model(input_ids=ids, use_cache=True, **last)
    if not hasattr(getattr(read, "past_key_values", None), "batch_repeat_interleave"):
        kind = type(model).__name__
        raise BackendError("likelihood", f"{kind} does not read on from a prefix", hint="name a decoder, such as GPT-2")
    first = read.logits[0, -1:].float().log_softmax(1)  # (1, V): of the first token of every text
    found: dict[int, Tensor] = {}
    for part in _batches([len(text) for text in texts], batch_size):
        rows = [texts[i] for i in part]
        longest = max(map(len, rows))
        ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows], device=model.device)
        heads = first[0, ids[:, :1]]  # (B, 1)
        rest = _continued(model, read.past_key_values, len(before), ids, [len(row) for row in rows])
        values = torch.cat([heads, rest], dim=1).cpu()
        found.update({i: values[row, : len(texts[i])] for row, i in enumerate(part)})
    return [found[i] for i in range(len(texts))]


def _batches(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Rows of like length together; a batch's logits, a vocabulary a place, stay within some hundred megabytes."""
    part: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if part and (len(part) == batch_size or (len(part) + 1) * lengths[i] > _PLACES):
            yield part
            part = []
        part.append(i)
    if part:
        yield part


def _continued(model: Any, cache: Any, before: int, ids: Tensor, lengths: Sequence[int]) -> Tensor:
    """ln P (B, L - 1) of all tokens but the first of ids (B, L) after the cached prefix, which is left as it was."""
    if ids.shape[1] == 1:
        return ids.new_zeros((len(ids), 0), dtype=torch.float32)
    mask = torch.tensor(
        [[1] * (before + n) + [0] * (ids.shape[1] - n) for n in lengths], device=ids.device
    )  # (B, before + L)
    repeated = copy.deepcopy(cache)
    repeated.batch_repeat_interleave(len(ids))
    logits = model(
        input_ids=ids[:, :-1], attention_mask=mask[:, :-1], past_key_values=repeated, use_cache=True
    ).logits.float()  # (B, L - 1, V)
    chosen = logits.gather(2, ids[:, 1:].unsqueeze(2)).squeeze(2)
    found: Tensor = chosen - logits.logsumexp(2)
    return found


def _unpacked(folder: Path, source: Callable[[], Path], licence: str) -> Path:
    if not intact(folder):
        if not package_asset(_GGUF).present:
            raise MissingExtraError("scorer 'likelihood'", _GGUF, EXTRA_OF[_GGUF])
        path = source()
        log.info("unpacking %s into %s (once)", path.name, folder)
        origin = {"origin": path.name, "licence": licence, "source_sha256": file_hash(path, 64)}
        unpack(folder, lambda temporary: _write(path, temporary), origin, "likelihood", "four times the file's size")
    return folder


def _write(path: Path, folder: Path) -> None:
    """The weights in 16 bits, the configuration and the SentencePiece vocabulary of a GGUF file."""
    try:
        (folder / _TOKENIZER).write_bytes(_vocabulary(path))
        model: Any = AutoModelForCausalLM.from_pretrained(str(path.parent), gguf_file=path.name, dtype=torch.float32)
    except (ValueError, KeyError, NotImplementedError) as error:
        raise BackendError(
            "likelihood", f"cannot unpack {path}: {error}", hint="name the model's Hugging Face checkpoint instead"
        ) from error
    model.half().save_pretrained(folder)


def _vocabulary(path: Path) -> bytes:
    """The SentencePiece model that a GGUF file's vocabulary was made from, as bytes.

    Transformers' own conversion makes the merges anew and gets Gemma's wrong.
    """
    from gguf import GGUFReader
    from transformers.utils import sentencepiece_model_pb2_new as sentencepiece_model

    fields = GGUFReader(path).fields
    kind = fields["tokenizer.ggml.model"].contents()
    if kind != "llama":
        raise ValueError(f"its vocabulary is of the kind {kind!r}, and only SentencePiece's can be written out")
    messages: Any = sentencepiece_model  # its classes are made at import
    spec = messages.ModelProto()
    spec.trainer_spec.model_type, spec.trainer_spec.byte_fallback = messages.TrainerSpec.BPE, True
    spec.normalizer_spec.name = "identity"
    prefix = fields.get("tokenizer.ggml.add_space_prefix")
    spec.normalizer_spec.add_dummy_prefix = bool(prefix.contents()) if prefix else True
    spec.normalizer_spec.remove_extra_whitespaces = False
    names = ("tokens", "scores", "token_type")
    columns = [fields[f"tokenizer.ggml.{name}"].contents() for name in names]
    for piece, score, form in zip(*columns, strict=True):
        spec.pieces.add(piece=piece, score=score, type=form)
    spec.trainer_spec.vocab_size = len(spec.pieces)
    return bytes(spec.SerializeToString())
