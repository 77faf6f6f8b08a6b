"""Any referenceless COMET checkpoint: a name on the hub, a folder, or a ``.ckpt`` file.

A local path never touches the network.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import yaml

from mdialeval.devices import choose_device
from mdialeval.errors import BackendError, ConfigError, DataError
from mdialeval.rank.lengths import Length, OnLong, estimate, measure
from mdialeval.records import Translation
from mdialeval.registry import Asset, package_asset
from mdialeval.signature import file_hash, signature_line, version

LICENCES = {
    "Unbabel/wmt20-comet-qe-da": "Apache-2.0",
    "Unbabel/wmt22-cometkiwi-da": "CC BY-NC-SA 4.0",
    "Unbabel/wmt23-cometkiwi-da-xl": "CC BY-NC-SA 4.0",
    "Unbabel/wmt23-cometkiwi-da-xxl": "CC BY-NC-SA 4.0",
}
"""Published referenceless checkpoints; all but the first are gated."""

_HUB = "https://huggingface.co"
_OPEN = "Unbabel/wmt20-comet-qe-da (Apache-2.0, not gated) or estimator: embedded"


class Comet:
    """Scores with a referenceless COMET model; higher is better, on the checkpoint's own scale.

    Args:
        model: ``owner/name`` on the hub (``Unbabel/`` may be left out), a folder with ``hparams.yaml`` and
            ``checkpoints/*.ckpt``, or a ``.ckpt`` file in such a folder.
        offline: only files that are already here, also for hub names.
        on_long: what happens to pairs longer than the model's window; see ``lengths.estimate``.
        batch_size: rows a batch at most.
        device: ``auto``, ``cpu``, ``cuda`` ...

    Raises:
        ConfigError: no such path, or a model that needs references.
        BackendError: the checkpoint is gated, absent or damaged; the message says what to do.
    """

    higher_is_better = True

    def __init__(
        self,
        model: str = "Unbabel/wmt20-comet-qe-da",
        *,
        offline: bool = True,
        on_long: OnLong = "truncate",
        batch_size: int = 64,
        device: str = "auto",
    ) -> None:
        from mdialeval.rank.score import CometPairs

        checkpoint = find_checkpoint(model) if _is_path(model) else _fetch(_hub_name(model), offline)
        place = choose_device(device)
        loaded = load_checkpoint(checkpoint).to(place).eval()
        self._pairs = CometPairs(loaded, batch_size)
        self._on_long = on_long
        self.identity = signature_line(
            {
                "estimator": "comet",
                "model": Path(model).name if _is_path(model) else _hub_name(model),
                "checkpoint": file_hash(checkpoint),
                "unbabel-comet": version("unbabel-comet"),
                "torch": version("torch"),
                "transformers": version("transformers"),
                "dtype": str(next(loaded.parameters()).dtype).removeprefix("torch."),
                "window": self._pairs.limit,
                "on_long": on_long,
            }
        )

    @staticmethod
    def assets(model: str = "Unbabel/wmt20-comet-qe-da", **_: object) -> list[Asset]:
        """The library and the checkpoint; nothing is loaded or asked for."""
        library = package_asset("unbabel-comet", "comet")
        if _is_path(model):
            try:
                return [library, Asset(f"COMET checkpoint {model}", "model", True, str(find_checkpoint(model)))]
            except ConfigError as error:
                return [library, Asset(f"COMET checkpoint {model}", "model", False, fix=str(error))]
        from huggingface_hub import try_to_load_from_cache

        name = _hub_name(model)
        found = try_to_load_from_cache(name, "checkpoints/model.ckpt") if name.count("/") == 1 else None
        here = isinstance(found, str)
        gated = LICENCES.get(name, "").startswith("CC")
        fix = f"huggingface-cli download {name}" + (f" after accepting the licence at {_HUB}/{name}" if gated else "")
        return [
            library,
            Asset(
                f"COMET checkpoint {name}",
                "model",
                here,
                str(found) if here else "",
                "" if here else fix,
                LICENCES.get(name, ""),
            ),
        ]

    def estimate(self, pairs: Sequence[Translation]) -> list[float]:
        """One score a pair; NaN for empty texts and for skipped long ones."""
        return estimate(self._pairs, pairs, self._on_long)

    def lengths(self, pairs: Sequence[Translation]) -> list[Length]:
        """Tokens that each pair needs, against the window."""
        return measure(self._pairs, pairs)


def load_checkpoint(checkpoint: Path) -> Any:
    """The COMET model of a local checkpoint, without asking the hub.

    Raises:
        BackendError: the file or the encoder's configuration it names cannot be read.
        ConfigError: the model needs references.
    """
    from comet import load_from_checkpoint

    hparams = _hparams(checkpoint)
    encoder = str(hparams.get("pretrained_model", ""))
    if not _is_here(encoder):
        raise BackendError(
            "comet",
            f"{checkpoint} is built on {encoder!r}, whose configuration and tokenizer are not on this machine",
            hint=f"huggingface-cli download {encoder} --exclude '*.bin' '*.safetensors'",
        )
    try:
        with _quiet(), _offline():
            model = load_from_checkpoint(str(checkpoint), local_files_only=True)
    except (
        OSError,
        RuntimeError,
        EOFError,
        KeyError,
        ValueError,
        UnpicklingError,
    ) as error:  # of torch.load and transformers
        raise BackendError("comet", f"{checkpoint} is not a readable checkpoint: {error}") from error
    if model.requires_references():
        raise ConfigError(
            f"{checkpoint} ({hparams.get('class_identifier')}) scores against references; ranking has none: use {_OPEN}"
        )
    return model


def find_checkpoint(path: str | Path) -> Path:
    """The ``.ckpt`` file of a local path, beside whose folder lies ``hparams.yaml``.

    Raises:
        ConfigError: nothing there, more than one checkpoint, or no ``hparams.yaml``.
    """
    root = Path(path).expanduser()
    if root.is_dir():
        found = sorted([*root.glob("checkpoints/*.ckpt"), *root.glob("*.ckpt")])
        if len(found) != 1:
            names = ", ".join(p.name for p in found) or "none"
            raise ConfigError(f"COMET folder {root}: one .ckpt file is needed in it or in checkpoints/, found {names}")
        root = found[0]
    if not root.is_file():
        raise ConfigError(f"no COMET checkpoint at {root} (working folder: {Path.cwd()})")
    if not (root.parents[1] / "hparams.yaml").is_file():
        raise ConfigError(f"COMET checkpoint {root}: hparams.yaml is missing from {root.resolve().parents[1]}")
    return root


def _is_path(model: str) -> bool:
    return model.startswith((".", "/", "~")) or model.endswith(".ckpt") or Path(model).exists()


def _hub_name(model: str) -> str:
    return model if "/" in model else f"Unbabel/{model}"


def _fetch(name: str, offline: bool) -> Path:
    """The checkpoint of a hub model, downloaded where that is allowed and needed."""
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    offline = offline or bool(constants.HF_HUB_OFFLINE)
    licence = f", licence {LICENCES[name]}" if name in LICENCES else ""
    gated = f"accept the licence at {_HUB}/{name}, put a token of your account into HF_TOKEN or `huggingface-cli login`"
    try:
        folder = snapshot_download(name, local_files_only=offline)
    except GatedRepoError:
        raise BackendError("comet", f"{name} is gated{licence}", hint=f"{gated}; open alternative: {_OPEN}") from None
    except (RepositoryNotFoundError, HFValidationError):
        raise BackendError(
            "comet",
            f"the hub has no model {name!r}, or it is private",
            hint=f"check the name; open alternative: {_OPEN}",
        ) from None
    except LocalEntryNotFoundError:
        how = "the run is offline" if offline else "the hub cannot be reached"
        step = f"huggingface-cli download {name}"
        if LICENCES.get(name, "").startswith("CC"):
            step = f"{gated}, then {step}"
        raise BackendError(
            "comet",
            f"{name} is not on this machine and {how}{licence}",
            retryable=not offline,
            hint=f"{step}; open alternative: {_OPEN}",
        ) from None
    except HfHubHTTPError as error:
        code = error.response.status_code if error.response is not None else 0
        raise BackendError("comet", f"the hub answered {code} for {name}", retryable=code >= 500) from None
    return find_checkpoint(folder)


def _is_here(encoder: str) -> bool:
    """Whether an encoder's configuration and tokenizer are local (its weights come with the checkpoint)."""
    from huggingface_hub import try_to_load_from_cache

    tokenizers = ("tokenizer.json", "sentencepiece.bpe.model", "spm.model", "vocab.txt", "vocab.json")
    if (folder := Path(encoder)).is_dir():
        return (folder / "config.json").is_file() and any((folder / name).is_file() for name in tokenizers)
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", encoder):
        return False
    held = [isinstance(try_to_load_from_cache(encoder, name), str) for name in ("config.json", *tokenizers)]
    return held[0] and any(held[1:])


def _hparams(checkpoint: Path) -> dict[str, Any]:
    path = checkpoint.parents[1] / "hparams.yaml"
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise DataError(f"not a readable hparams.yaml: {error}", path) from None
    return values if isinstance(values, dict) else {}


@contextlib.contextmanager
def _offline() -> Iterator[None]:
    """Some of COMET's loaders drop ``local_files_only`` on the way; the hub's own switch is asked each time."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Lightning and transformers announce what is normal here (an upgraded checkpoint, an unused pooler)."""
    names = ("lightning.pytorch", "pytorch_lightning", "transformers")
    before = {name: logging.getLogger(name).level for name in names}
    try:
        for name in names:
            logging.getLogger(name).setLevel(logging.ERROR)
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
