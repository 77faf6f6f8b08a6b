"""Training and scoring speed: this package against a plain loop as the published systems train and score.

The plain training loop: ``AutoModelForSequenceClassification`` with one output and MSE, everything trainable, every
pair padded to 258 tokens, batch 16.  Both sides learn the same pairs from the same encoder and are checked on the same
held-out dialogues.  The plain scoring loop runs the trained evaluator on one pair a row, padded to 258, batch 16; the
scores must be equal.

    python scripts/benchmarks/train.py [--data ../shared/data] [--pairs 256] [--scored 480] [--rounds 2]
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from mdialeval import assets
from mdialeval.config.train import TrainConfig
from mdialeval.model.batches import Batch, collate
from mdialeval.model.evaluator import Evaluator
from mdialeval.model.markup import encode_pairs
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


def plain_scoring(evaluator: Evaluator, examples: Sequence[Example]) -> list[float]:
    """The evaluator's own network, one pair a row, padded to 258, batch 16."""
    rows = encode_pairs(evaluator.tokenizer, examples, evaluator.settings.markup)
    attention, scores = evaluator.network.architecture.attention, []
    start, pad = evaluator.tokenizer.cls_token_id, evaluator.tokenizer.pad_token_id
    with torch.inference_mode():
        for first in range(0, len(rows), BATCH):
            part = [[i] for i in range(first, min(first + BATCH, len(rows)))]
            batch = _pad(collate(rows, part, start, pad, attention), pad)
            scores += evaluator.network.to_scores(evaluator.network(batch)).tolist()
    return scores


def _pad(batch: Batch, pad: int) -> Batch:
    room = (0, PADDED - batch.input_ids.shape[1])
    ids, positions, owners = (
        torch.nn.functional.pad(part, room, value=fill)
        for part, fill in zip((batch.input_ids, batch.positions, batch.owners), (pad, 0, -1), strict=True)
    )
    return batch._replace(input_ids=ids, positions=positions, owners=owners)


def _example(pair: TrainingPair) -> Example:
    return Example(pair.id, pair.language, pair.context, pair.response)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--pairs", type=int, default=256)
    parser.add_argument("--scored", type=int, default=480)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    items = DailyDialogPlusPlus().read([arguments.data / "dailydialogpp" / "dev.json"])
    pairs = list(Sensibleness().pairs(items, SEED))
    chosen = limit_pairs(pairs, max(64, round(arguments.pairs / 0.8)), SEED)
    config = TrainConfig(dev_share=0.2, checks=1)
    split = split_by_group(chosen, config.dev_share, SEED)
    training: list[tuple[float, float, float, float]] = []
    scoring: list[tuple[float, float]] = []
    difference = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(arguments.rounds):
            place = Path(folder) / str(turn)
            ours, plain = our_training(chosen, config, place), plain_training(*split, config.learning_rate)
            training.append((*ours, *plain))
            print(f"train  ours {ours[0]:7.1f} pairs/s (accuracy {ours[1]:.3f})", end="   ")
            print(f"plain {plain[0]:7.1f} pairs/s (accuracy {plain[1]:.3f})", flush=True)
            evaluator = Evaluator.from_pretrained(place)
            examples = [_example(p) for p in pairs[-arguments.scored :]]
            started = time.monotonic()
            fast = [p.score or 0.0 for p in evaluator.predict(examples)]
            between = time.monotonic()
            slow = plain_scoring(evaluator, examples)
            ended = time.monotonic()
            difference = max(difference, *(abs(a - b) for a, b in zip(fast, slow, strict=True)))
            scoring.append((len(examples) / (between - started), len(examples) / (ended - between)))
            print(f"score  ours {scoring[-1][0]:7.1f} pairs/s   plain {scoring[-1][1]:7.1f} pairs/s", flush=True)
    ours_speed, plain_speed = (statistics.median(row[i] for row in training) for i in (0, 2))
    score_ratio = statistics.median(a / b for a, b in scoring)
    print(
        json.dumps(
            {
                "name": "train",
                "ours": round(ours_speed, 2),
                "peer": round(plain_speed, 2),
                "unit": "pairs/s",
                "ratio": round(statistics.median(row[0] / row[2] for row in training), 2),
                "equal": difference < 1e-3,
                "dev_accuracy": {
                    "ours": round(statistics.fmean(row[1] for row in training), 4),
                    "peer": round(statistics.fmean(row[3] for row in training), 4),
                },
                "score_ratio": round(score_ratio, 2),
                "score_difference": difference,
                "pairs": len(split.train),
                "scored": arguments.scored,
            }
        )
    )


if __name__ == "__main__":
    main()
