"""Run by ``test_processes.py`` under torch's launcher: every process trains the same evaluator together."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from mdialeval.config.train import TrainConfig
from mdialeval.records import TrainingPair
from mdialeval.tables import read_parquet
from mdialeval.train.evaluators import set_up, train_evaluator
from mdialeval.train.passes import Passes
from mdialeval.train.plan import split_by_group

if __name__ == "__main__":
    torch.set_num_threads(1)
    settings, pairs, folder = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    config = TrainConfig(**json.loads(settings.read_text()))
    known = list(read_parquet(pairs, TrainingPair))
    train_evaluator(known, "d", config, folder, seed=1)
    ready = set_up(split_by_group(known, config.dev_share, 1), config, 1)
    passes = Passes(ready.accelerator, ready.network, ready.tokenizer, ready.config, 1, frozen=False)
    passes.prepare(ready.train, ready.dev)
    figures = passes.evaluate(ready.dev)._asdict()  # of untrained weights, the same however many processes there are
    (folder / f"untrained-{ready.accelerator.process_index}.json").write_text(json.dumps(figures))
