"""Parameter-efficient tuning inside a base encoder: LoRA (through peft), bottleneck adapters and MAD-X (adapters).

Everything of the base stays as it is; only what is inserted here, and the head, learns and is saved.  The encoder keeps
its class and its call, so packed pairs (three-dimensional masks, given positions) go through unchanged.

MAD-X (Pfeiffer et al., EMNLP 2020): a language adapter, with an invertible one at the embeddings, learned from plain
text of a language; a task adapter learned on top of the English one; at test time the language adapter of the example
stands in its place.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from safetensors.torch import load_file
from torch import Tensor, nn

from mdialeval.errors import ConfigError, DataError, MissingExtraError
from mdialeval.registry import EXTRA_OF

Kind = Literal["lora", "adapter", "madx"]
TASK = "task"
_INSERTED = (".lora_A.", ".lora_B.", ".adapters.", "invertible_adapters.")


@dataclass(frozen=True, slots=True)
class Tuning:
    """What is inserted into the base encoder.

    Attributes:
        kind: ``lora``, ``adapter`` (one bottleneck a layer) or ``madx`` (the same on top of language adapters).
        rank, alpha, dropout: of LoRA; its update is scaled by alpha / rank.
        targets: names of the linear layers that LoRA changes; empty = what peft takes for the model type.
        layers: only this many top layers are changed; None = all.
        reduction: width of the encoder divided by the width of the task adapter.
        language_reduction: the same of the language adapters.
        languages: language adapters that are held, ``home`` among them.
        home: the language whose adapter the task is learned on, and which stands in for languages without one.
    """

    kind: Kind
    rank: int = 8
    alpha: float = 16.0
    dropout: float = 0.0
    targets: tuple[str, ...] = ()
    layers: int | None = None
    reduction: float = 16.0
    language_reduction: float = 2.0
    languages: tuple[str, ...] = ()
    home: str = "en"

    @property
    def label(self) -> str:
        """In one word, for signatures.

        >>> Tuning("lora").label, Tuning("madx", languages=("en", "pt")).label
        ('lora-8', 'madx-16-en+pt')
        """
        if self.kind == "lora":
            return f"lora-{self.rank}"
        held = f"-{'+'.join(self.languages)}" if self.languages else ""
        return f"{self.kind}-{self.reduction:g}{held}"

    def adapter_for(self, language: str) -> str:
        """The language adapter that an example of a language is read with.

        >>> Tuning("madx", languages=("en", "pt")).adapter_for("pt-BR")
        'pt'
        >>> Tuning("madx", languages=("en", "pt")).adapter_for("ja")
        'en'
        """
        for code in (language, language.partition("-")[0]):
            if code in self.languages:
                return code
        return self.home


def equip(base: Any, tuning: Tuning) -> None:
    """Insert what ``tuning`` describes; afterwards only that (of MAD-X only the task adapter) takes gradients.

    Every insertion starts as the identity: the encoder's output is what it was.

    Raises:
        MissingExtraError: peft or adapters is not installed.
        ConfigError: the library does not know the encoder's type, or has no layer of a given name.
    """
    if tuning.kind == "lora":
        _insert_lora(base, tuning)
    else:
        _insert_adapters(base, tuning)
    learned = ".lora_" if tuning.kind == "lora" else f".{TASK}."
    for name, parameter in base.named_parameters():
        parameter.requires_grad_(learned in name)


def speak(base: Any, tuning: Tuning, language: str) -> str:
    """Switch a MAD-X encoder to a language; the code of the adapter that it now reads with."""
    code = tuning.adapter_for(language)
    library = _library("adapters", tuning.kind)
    base.set_active_adapters(library.Stack(language_adapter(code), TASK))
    return code


def language_adapter(code: str) -> str:
    """The name of a language's adapter inside the encoder."""
    return f"language-{code}"


def inserted_names(network: nn.Module) -> set[str]:
    """Names of all weights that ``equip`` inserted, whether they learn or not."""
    return {name for name in network.state_dict() if any(part in name for part in _INSERTED)}


def language_weights(base: nn.Module, code: str) -> dict[str, Tensor]:
    """The weights of one language adapter, by name."""
    part = f".{language_adapter(code)}."
    return {name: value for name, value in base.state_dict().items() if part in name}


def load_language(base: nn.Module, code: str, path: Path) -> None:
    """Put the weights of a saved language adapter into its place.

    Raises:
        DataError: the file's weights are not those of such an adapter in this encoder.
    """
    mine, found = language_weights(base, code), load_file(path)
    if {k: v.shape for k, v in mine.items()} != {k: v.shape for k, v in found.items()}:
        raise DataError(f"the language adapter {code!r} was made for another encoder or width: train it again", path)
    base.load_state_dict(found, strict=False)


def merge_lora(base: nn.Module) -> None:
    """Add the LoRA updates to the weights that they change and take LoRA out: an ordinary encoder remains."""
    layer = importlib.import_module("peft.tuners.tuners_utils").BaseTunerLayer
    for name, module in list(base.named_modules()):
        if isinstance(module, layer):
            module.merge()
            parent, _, leaf = name.rpartition(".")
            setattr(base.get_submodule(parent), leaf, module.get_base_layer())


def _insert_lora(base: Any, tuning: Tuning) -> None:
    peft = _library("peft", tuning.kind)
    targets = list(tuning.targets) or None
    if targets == ["all-linear"]:
        targets = sorted({n.rpartition(".")[2] for n, m in base.named_modules() if isinstance(m, nn.Linear)})
    depth = int(base.config.num_hidden_layers)
    settings = peft.LoraConfig(
        r=tuning.rank,
        lora_alpha=tuning.alpha,
        lora_dropout=tuning.dropout,
        target_modules=targets,
        layers_to_transform=None if tuning.layers is None else list(range(depth))[-tuning.layers :],
    )
    try:
        peft.inject_adapter_in_model(settings, base)
    except ValueError as error:
        raise ConfigError(f"train.tuning.targets: {error}") from None


def _insert_adapters(base: Any, tuning: Tuning) -> None:
    library = _library("adapters", tuning.kind)
    depth = int(base.config.num_hidden_layers)
    left_out = [] if tuning.layers is None else list(range(depth))[: depth - tuning.layers]
    try:
        library.init(base)
    except (ValueError, AttributeError) as error:
        raise ConfigError(
            f"train.tuning.kind: the adapters library does not support {base.config.model_type!r} encoders ({error}); "
            "use lora"
        ) from None
    for code in tuning.languages:
        language = library.SeqBnInvConfig(reduction_factor=tuning.language_reduction)
        base.add_adapter(language_adapter(code), config=language)
    base.add_adapter(TASK, config=library.SeqBnConfig(reduction_factor=tuning.reduction, leave_out=left_out))
    for name, parameter in base.named_parameters():
        last = ".adapter_up." in name or (".invertible_adapters." in f".{name}" and ".2." in name)
        if last and any(part in name for part in _INSERTED):
            nn.init.zeros_(parameter)
    base.adapters_config.active_setup = library.Stack(TASK)  # its setter would warn that none is active yet
    if tuning.languages:
        speak(base, tuning, tuning.home)


def _library(name: str, kind: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise MissingExtraError(f"train.tuning.kind {kind!r}", name, EXTRA_OF[name]) from None
