"""In which precision the network's matrix products are made."""

from __future__ import annotations

from typing import Literal

import torch

from mdialeval.errors import ConfigError

Precision = Literal["auto", "fp32", "bf16", "fp16"]
NO_HALF = frozenset({"deberta-v2"})
"""Model types known to break in half precision (zero loss, NaN validation): ``auto`` keeps fp32 for them."""


def choose_dtype(precision: Precision, device: torch.device, model_type: str) -> torch.dtype:
    """The dtype of the matrix products; ``auto`` is bf16 where the hardware multiplies it, else fp32.

    Raises:
        ConfigError: fp16 on a CPU.
    """
    if precision == "fp16" and device.type == "cpu":
        raise ConfigError("precision fp16 needs a GPU; use auto, bf16 or fp32")
    if precision != "auto":
        return {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]
    half = torch.cuda.is_bf16_supported() if device.type == "cuda" else has_native_bf16()
    return torch.bfloat16 if half and model_type not in NO_HALF else torch.float32


def has_native_bf16() -> bool:
    """Whether this CPU multiplies bf16 in hardware; elsewhere bf16 is slower than fp32."""
    probes = (getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
    return any(probe() for probe in probes if probe is not None)
