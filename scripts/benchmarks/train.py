"""Training speed: this package against a plain loop as the published systems train, and two processes against one.

The plain loop: ``AutoModelForSequenceClassification`` with one output and MSE, everything trainable, every pair padded
to 258 tokens, batch 16.  Both sides learn the same pairs from the same encoder and are checked on the same held-out
dialogues.  Then two processes of one thread each against one such process, through torch's launcher.

    python scripts/benchmarks/train.py [--data ../shared/data] [--pairs 256] [--rounds 1] [--shared-pairs 384]
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from mdialeval import assets
from mdialeval.config.train import TrainConfig
from mdialeval.model.evaluator import Evaluator
from mdialeval.readers.dailydialogpp import DailyDialogPlusPlus
from mdialeval.records import Example, TrainingPair
from mdialeval.tasks.sensibleness import Sensibleness
from mdialeval.train.evaluators import train_evaluator
from mdialeval.train.plan import limit_pairs, split_by_group

PADDED, BATCH, SEED = 258, 16, 13


def accuracy(scores: Sequence[float], pairs: Sequence[TrainingPair]) -> float:
    """Share of pairs on the right side of .5, both labels counting alike."""
    right: dict[float, list[bool]] = {}
    for score, pair in zip(scores, pairs, strict=True):
        right.setdefault(pair.label, []).append((score > 0.5) == (pair.label > 0.5))
    return statistics.fmean(sum(hits) / len(hits) for hits in right.values())


def plain_training(train: Sequence[TrainingPair], dev: Sequence[TrainingPair], rate: float) -> tuple[float, float]:
    """Pairs per second of the plain loop, and its dev accuracy."""
    where = assets.resolve_encoder("embedded")
    torch.manual_seed(SEED)
    tokenizer: Any = AutoTokenizer.from_pretrained(where)  # type: ignore[no-untyped-call]
    model = AutoModelForSequenceClassification.from_pretrained(where, num_labels=1, problem_type="regression").train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)

    def inputs(part: Sequence[TrainingPair]) -> Any:
        contexts = [tokenizer.sep_token.join(t.text for t in p.context) for p in part]
        responses = [p.response.text for p in part]
        return tokenizer(
            contexts, responses, padding="max_length", truncation="only_first", max_length=PADDED, return_tensors="pt"
        )

    order = torch.randperm(len(train)).tolist()
    started = time.monotonic()
    for start in range(0, len(order), BATCH):
        part = [train[i] for i in order[start : start + BATCH]]
        loss = model(**inputs(part), labels=torch.tensor([p.label for p in part])).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    speed = len(train) / (time.monotonic() - started)
    model.eval()
    with torch.inference_mode():
        scores = [s for i in range(0, len(dev), 32) for s in model(**inputs(dev[i : i + 32])).logits[:, 0].tolist()]
    return speed, accuracy(scores, dev)


def our_training(pairs: Sequence[TrainingPair], config: TrainConfig, folder: Path) -> tuple[float, float]:
    """Pairs per second of the loop, dev evaluation included, and the dev accuracy."""
    summary = train_evaluator(pairs, "sensibleness", config, folder, SEED)
    dev = split_by_group(pairs, config.dev_share, SEED).dev
    predictions = Evaluator.from_pretrained(folder).predict([_example(p) for p in dev])
    return summary.pairs_per_second, accuracy([p.score or 0.0 for p in predictions], dev)


def speed_of(processes: int, settings: Path, folder: Path) -> float:
    """Pairs per second of a training under torch's launcher, one thread a process."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "true"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
    command += [__file__, "--worker", str(settings), str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    return float(done.stdout.split()[-1])


def work(settings: Path, folder: Path) -> None:
    """One process of a training: the first prints pairs per second, all processes together."""
    torch.set_num_threads(1)
    values = json.loads(settings.read_text(encoding="utf-8"))
    pairs = limit_pairs(all_pairs(Path(values["data"])), values["pairs"], SEED)
    config = TrainConfig(device="cpu", checks=1, batch_size=values["batch"])
    summary = train_evaluator(pairs, "sensibleness", config, folder, SEED)
    if int(os.environ.get("RANK", "0")) == 0:
        print(summary.pairs_per_second, flush=True)


def all_pairs(data: Path) -> list[TrainingPair]:
    """Pairs of the sensibleness task from English dialogues."""
    return list(Sensibleness().pairs(DailyDialogPlusPlus().read([data / "dailydialogpp" / "dev.json"]), SEED))


def _example(pair: TrainingPair) -> Example:
    return Example(pair.id, pair.language, pair.context, pair.response)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--pairs", type=int, default=256, help="to learn from, beside those held out")
    parser.add_argument(
        "--shared-pairs", type=int, default=384, help="of the comparison of processes; 0 = leave it out"
    )
    parser.add_argument("--batch", type=int, default=64, help="pairs a step in the comparison of processes")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--worker", type=Path, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    if arguments.worker:
        work(*arguments.worker)
        return
    chosen = limit_pairs(all_pairs(arguments.data), max(64, round(arguments.pairs / 0.8)), SEED)
    config = TrainConfig(dev_share=0.2, checks=1)
    split = split_by_group(chosen, config.dev_share, SEED)
    training: list[tuple[float, float, float, float]] = []
    shared: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "settings.json"
        values = {"data": str(arguments.data), "pairs": arguments.shared_pairs, "batch": arguments.batch}
        settings.write_text(json.dumps(values), encoding="utf-8")
        for turn in range(arguments.rounds):
            place = Path(folder) / str(turn)
            if arguments.pairs:
                training.append((*our_training(chosen, config, place), *plain_training(*split, config.learning_rate)))
                print("train  ours {:7.1f} pairs/s (accuracy {:.3f})".format(*training[-1][:2]), end="   ")
                print("plain {:7.1f} pairs/s (accuracy {:.3f})".format(*training[-1][2:]), flush=True)
            if arguments.shared_pairs:
                shared.append((speed_of(2, settings, place / "two"), speed_of(1, settings, place / "one")))
                print("processes  two {:7.1f} pairs/s   one {:7.1f} pairs/s".format(*shared[-1]), flush=True)
    print(json.dumps(summarised(training, shared, len(split.train))))


def summarised(
    training: Sequence[tuple[float, float, float, float]], shared: Sequence[tuple[float, float]], pairs: int
) -> dict[str, Any]:
    """The last line."""
    found: dict[str, Any] = {"name": "train", "unit": "pairs/s", "pairs": pairs}
    if training:
        accuracies = [statistics.fmean(row[i] for row in training) for i in (1, 3)]
        found |= {
            "ours": round(statistics.median(row[0] for row in training), 2),
            "peer": round(statistics.median(row[2] for row in training), 2),
            "ratio": round(statistics.median(row[0] / row[2] for row in training), 2),
            "equal": accuracies[0] >= accuracies[1],
            "dev_accuracy": {"ours": round(accuracies[0], 4), "peer": round(accuracies[1], 4)},
        }
    if shared:
        found["two_processes"] = {
            "two": round(statistics.median(two for two, _ in shared), 2),
            "one": round(statistics.median(one for _, one in shared), 2),
            "ratio": round(statistics.median(two / one for two, one in shared), 2),
        }
    return found


if __name__ == "__main__":
    main()
