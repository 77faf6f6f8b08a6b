"""The state of an unfinished training: one file, whole or absent, so that a killed run goes on where it was.

Everything random is a function of (seed, step), so weights, Adam's moments and the position are the whole state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from mdialeval.errors import ResumeError
from mdialeval.files import replace_atomically

CHECKPOINT, BEST = "checkpoint.safetensors", "best.safetensors"


class Progress(NamedTuple):
    """Where a training stands.

    Attributes:
        step: steps done.
        history: dev figures so far, as JSON values with their step.
        best: index into ``history``, or None.
        stale: checks since the best one.
    """

    step: int
    history: list[dict[str, Any]]
    best: int | None
    stale: int


def write_tensors(path: Path, tensors: Mapping[str, Tensor], state: Any) -> None:
    """Tensors and a JSON value in one safetensors file, atomically."""
    payload = save({k: v.detach().cpu().contiguous() for k, v in tensors.items()}, {"state": json.dumps(state)})

    def put(stream: BinaryIO) -> None:
        stream.write(payload)

    replace_atomically(path, put)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], Any]:
    """What ``write_tensors`` wrote."""
    with safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        return tensors, json.loads(file.metadata()["state"])


def save_checkpoint(
    folder: Path,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    names: Mapping[Tensor, str],
    recipe: Mapping[str, Any],
    progress: Progress,
) -> None:
    """Write the state of a training.

    Args:
        names: trained parameter -> its name.
        recipe: all that the result depends on; a checkpoint of another recipe is never continued.
    """
    tensors = {f"buffer.{k}": v for k, v in network.named_buffers() if k.startswith("head.")}
    for parameter, name in names.items():
        tensors[f"weight.{name}"] = parameter
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"adam.{key}.{name}"] = value
    write_tensors(folder / CHECKPOINT, tensors, {"recipe": dict(recipe), "progress": progress._asdict()})


def load_checkpoint(
    folder: Path,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    names: Mapping[Tensor, str],
    recipe: Mapping[str, Any],
) -> Progress | None:
    """Restore the state that ``save_checkpoint`` wrote; None where there is none.

    Raises:
        ResumeError: it belongs to another recipe or encoder (the message lists what differs), or is damaged.
    """
    path = folder / CHECKPOINT
    if not path.exists():
        return None
    try:
        tensors, state = read_tensors(path)
    except SafetensorError as error:
        raise ResumeError(f"{path} cannot be read ({error}): delete the folder to start again") from None
    if differences := recipe_differences(state["recipe"], json.loads(json.dumps(dict(recipe)))):
        raise ResumeError(
            f"{path} belongs to a training with other settings: {'; '.join(differences)}. "
            "Restore them to go on, or delete the folder to start again"
        )
    with torch.no_grad():
        for name, buffer in network.named_buffers():
            if name.startswith("head."):
                buffer.copy_(tensors[f"buffer.{name}"])
        for parameter, name in names.items():
            parameter.copy_(tensors[f"weight.{name}"])
            found = {
                key: tensors[f"adam.{key}.{name}"]
                for key in ("step", "exp_avg", "exp_avg_sq")
                if f"adam.{key}.{name}" in tensors
            }
            if found:
                moved = {k: v.to(parameter.device) if k != "step" else v for k, v in found.items()}
                optimizer.state[parameter] = moved
    return Progress(**state["progress"])


def recipe_differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Where two recipes differ, one sentence each.

    >>> recipe_differences({"seed": 1, "config": {"epochs": 1.0}}, {"seed": 1, "config": {"epochs": 2.0}})
    ['config.epochs was 1.0 and is 2.0']
    """
    found: list[str] = []
    for key in sorted(set(old) | set(new)):
        before, after = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            found += recipe_differences(before, after, f"{prefix}{key}.")
        elif before != after:
            found.append(f"{prefix}{key} was {before} and is {after}")
    return found
