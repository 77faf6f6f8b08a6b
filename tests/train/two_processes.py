"""Run by ``test_processes.py`` under torch's launcher: every process trains the same evaluator together."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from mdialeval.config.train import TrainConfig
from mdialeval.records import TrainingPair
from mdialeval.tables import read_parquet
from mdialeval.train.evaluators import train_evaluator

if __name__ == "__main__":
    torch.set_num_threads(1)
    settings, pairs, folder = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    config = TrainConfig(**json.loads(settings.read_text()))
    train_evaluator(list(read_parquet(pairs, TrainingPair)), "d", config, folder, seed=1)
