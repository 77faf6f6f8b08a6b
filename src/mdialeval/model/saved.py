"""Evaluators on disk: a folder with the trained weights, the tokenizer, and how inputs are written.

Only weights that training changed are stored; the untouched ones (with frozen embeddings, four fifths of the embedded
encoder) stay in the base encoder, which is named together with a hash of its weights and checked on loading.
``export`` writes the whole encoder as an ordinary Hugging Face checkpoint instead, so that the folder stands alone.

    evaluator.json          dimension, markup, limits, architecture, base encoder, how it was trained
    evaluator.safetensors   changed weights and head
    tokenizer files         as Hugging Face writes them
    config.json, model.safetensors   the encoder, in exported folders only
    README.md               the model card
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save

from mdialeval import assets
from mdialeval.errors import BackendError, DataError
from mdialeval.files import replace_atomically, write_json
from mdialeval.model.adapters import Tuning, inserted_names, merge_lora
from mdialeval.model.encoder import load_base, weights_hash
from mdialeval.model.likelihood import load_reader
from mdialeval.model.markup import Markup
from mdialeval.model.network import Architecture, EvaluatorNetwork, GraphBranch, changed_state
from mdialeval.model.stack import Stack, refuse_stack

SETTINGS, WEIGHTS, ONNX, FORMAT = "evaluator.json", "evaluator.safetensors", "model.onnx", 1


@dataclass(frozen=True, slots=True)
class Settings:
    """What ``evaluator.json`` holds.

    Attributes:
        encoder: the base encoder as the configuration names it; ``.`` = inside the folder (exported).
        encoder_hash: ``weights_hash`` of the base encoder.
        training: data, figures and settings of the training, for the model card.
        stack: how a language model's likelihoods are weighed with its scores, or None.
    """

    dimension: str
    encoder: str
    encoder_hash: str
    architecture: Architecture = field(default_factory=Architecture)
    markup: Markup = field(default_factory=Markup)
    training: Mapping[str, Any] = field(default_factory=dict)
    stack: Stack | None = None


def save_folder(
    folder: Path, network: EvaluatorNetwork, tokenizer: Any, settings: Settings, trained: set[str], card: str
) -> None:
    """Write an evaluator; ``evaluator.json`` comes last, so a folder that has it is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    payload = save(changed_state(network, trained))
    replace_atomically(folder / WEIGHTS, lambda stream: _put(stream, payload))
    tokenizer.save_pretrained(folder)
    replace_atomically(folder / "README.md", lambda stream: _put(stream, card.encode()))
    write_json(folder / SETTINGS, {"format": FORMAT, **dataclasses.asdict(settings)})


def save_stacked(folder: Path, target: Path, settings: Settings, card: str) -> None:
    """Write a saved evaluator a second time, with other settings and another model card."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns(SETTINGS, "README.md"))
    replace_atomically(target / "README.md", lambda stream: _put(stream, card.encode()))
    write_json(target / SETTINGS, {"format": FORMAT, **dataclasses.asdict(settings)})


def read_settings(folder: str | Path) -> Settings:
    """The settings of a saved evaluator.

    Raises:
        DataError: the folder holds no evaluator, or one of another format.
    """
    path = Path(folder) / SETTINGS
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"no evaluator here ({SETTINGS} is missing); `mdialeval train` makes one", folder) from None
    except json.JSONDecodeError as error:
        raise DataError(f"not JSON ({error.msg}); train again", path, error.lineno) from None
    if values.pop("format", None) != FORMAT:
        raise DataError(f"written by another version of mdialeval (format {FORMAT} is read here); train again", path)
    try:
        branch = values["architecture"].pop("graph", None)
        graph = GraphBranch(**branch) if branch else None
        tuned = values["architecture"].pop("tuning", None)
        values["architecture"] = Architecture(**values["architecture"], graph=graph, tuning=_tuning(tuned))
        values["markup"] = Markup(**values["markup"])
        values["stack"] = _stack(values.get("stack"))
        return Settings(**values)
    except (KeyError, TypeError) as error:
        raise DataError(f"settings are incomplete or unknown ({error}); train again", path) from None


def load_folder(folder: str | Path, encoder: str | None = None) -> tuple[EvaluatorNetwork, Any, Settings]:
    """The network, tokenizer and settings of a saved evaluator.

    Args:
        folder: written by ``save_folder`` or ``export``.
        encoder: another place of the same base encoder, such as a moved folder.

    Raises:
        DataError: the folder is not whole.
        BackendError: the base encoder is missing or is another one.
    """
    folder = Path(folder)
    settings = read_settings(folder)
    if (folder / ONNX).exists():
        raise DataError("an evaluator exported to ONNX; score with the scorer `onnx`, or name the original", folder)
    inside = settings.encoder == "."
    where = str(folder) if inside else encoder or settings.encoder
    base, tokenizer = load_base(where) if inside else load_reader(where)
    if not inside and (found := weights_hash(base)) != settings.encoder_hash:
        raise BackendError(
            f"evaluator {folder}",
            f"it was trained on the encoder {settings.encoder!r} with weights {settings.encoder_hash}, "
            f"but {where} holds weights {found}",
            hint="pass the right folder as encoder=, or train again",
        )
    network = EvaluatorNetwork(base, settings.architecture)
    try:
        state = load_file(folder / WEIGHTS)
    except (FileNotFoundError, SafetensorError) as error:
        raise DataError(f"the weights cannot be read ({error}); train again", folder / WEIGHTS) from None
    wrong = sorted(set(state) - set(network.state_dict()))
    wrong += [k for k, v in state.items() if k not in wrong and v.shape != network.state_dict()[k].shape]
    own = {k for k in network.state_dict() if not k.startswith("encoder.base.")} | inserted_names(network)
    lacking = sorted(own - state.keys())
    if wrong or lacking:
        raise DataError(f"the weights do not fit the encoder ({(wrong + lacking)[0]} differs)", folder / WEIGHTS)
    network.load_state_dict(state, strict=False)
    return network.eval(), tokenizer, settings


def export(folder: str | Path, target: str | Path) -> None:
    """Write a saved evaluator as a folder that stands alone, its encoder an ordinary Hugging Face checkpoint.

    LoRA's updates are added to the weights that they change; adapters stay beside the encoder, in the weights' file.

    Raises:
        ConfigError: it also reads a language model.
    """
    network, tokenizer, settings = load_folder(folder)
    refuse_stack(settings.stack, str(folder))
    target, tuning = Path(target), settings.architecture.tuning
    base, kept = network.text_encoder.base, set[str]()
    if tuning is not None and tuning.kind == "lora":
        merge_lora(base)
        settings = dataclasses.replace(settings, architecture=dataclasses.replace(settings.architecture, tuning=None))
    elif tuning is not None:
        kept = inserted_names(network)
        where = str(folder) if settings.encoder == "." else str(assets.resolve_encoder(settings.encoder))
        base, _ = load_base(where)  # adapters leave it as it was
    base.save_pretrained(target)
    card = (Path(folder) / "README.md").read_text(encoding="utf-8")
    save_folder(target, network, tokenizer, dataclasses.replace(settings, encoder="."), trained=kept, card=card)


def _tuning(values: dict[str, Any] | None) -> Tuning | None:
    if not values:
        return None
    return Tuning(**(values | {name: tuple(values[name]) for name in ("targets", "languages")}))


def _stack(values: dict[str, Any] | None) -> Stack | None:
    if not values:
        return None
    return Stack(**(values | {name: tuple(values[name]) for name in ("mean", "spread", "weights")}))


def _put(stream: Any, payload: bytes) -> None:
    stream.write(payload)
