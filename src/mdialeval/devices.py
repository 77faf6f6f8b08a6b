"""Where a network runs.  torch is imported on use."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mdialeval.errors import ConfigError

if TYPE_CHECKING:
    import torch

log = logging.getLogger(__name__)


def choose_device(name: str) -> torch.device:
    """The device of a name; ``auto`` takes a GPU where there is one and says what it took.

    Raises:
        ConfigError: the device asked for is not there (never a silent fall-back to the slow one).
    """
    import torch

    if name == "auto":
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        log.info("device: auto is %s", device)
        return device
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"unknown device {name!r}: use auto, cpu, cuda or cuda:0") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"device {name!r} was asked for, but torch finds no GPU here; use device: auto or cpu")
    return device


def use_threads(count: int) -> int:
    """Let torch compute with this many threads on the CPU; how many it used before."""
    import torch

    before: int = torch.get_num_threads()
    torch.set_num_threads(count)
    return before


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on a GPU or on the CPU, whose allocator has no exception of its own.

    >>> out_of_memory(RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")), out_of_memory(RuntimeError("shape"))
    (True, False)
    """
    import torch

    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and ("out of memory" in text or "can't allocate memory" in text)


def release_memory() -> None:
    """Give back what a GPU's allocator holds without using it."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def gpu_count() -> int:
    """How many GPUs torch sees."""
    import torch

    return int(torch.cuda.device_count())
