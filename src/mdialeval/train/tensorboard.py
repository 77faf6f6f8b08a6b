"""A training's log for TensorBoard: losses, dev figures and speed by step."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mdialeval.errors import MissingExtraError
from mdialeval.registry import EXTRA_OF

PACKAGE = "tensorboard"


def board_path(folder: Path) -> Path:
    """The log's folder: beside the evaluator's, since it holds times and is no part of the result."""
    return folder.with_name(folder.name + ".tensorboard")


def open_board(path: Path) -> Any:
    """A ``SummaryWriter``; a training that goes on adds to its folder.

    Raises:
        MissingExtraError: tensorboard is not installed.
    """
    try:
        importlib.import_module(PACKAGE)
    except ModuleNotFoundError as error:
        if error.name != PACKAGE:
            raise
        raise MissingExtraError("train.tensorboard", PACKAGE, EXTRA_OF[PACKAGE]) from None
    writer = importlib.import_module("torch.utils.tensorboard").SummaryWriter
    return writer(str(path))


def write_board(board: Any, record: Mapping[str, Any]) -> None:
    """Add the numbers of a line of the log, under ``dev/`` those of a check and under ``train/`` the others.

    What is undefined (None) is left out: a curve has a gap, never a 0.
    """
    part = "dev" if "statistic" in record else "train"
    for key, value in record.items():
        if key != "step" and isinstance(value, (int, float)):
            name = record["statistic"] if key == "value" else key
            board.add_scalar(f"{part}/{name}", value, record["step"])
    board.flush()
