"""Scoring speed: this package against a plain loop, one pair a row, padded to 258 tokens, batch 16.

Both sides run the same trained network over the same rated rows, so that scores must be equal and rank agreement with
the human ratings too.  ``--onnx`` adds the exported graph (onnxruntime) as a third side.

    python scripts/benchmarks/score.py [--data ../shared/data] [--evaluator FOLDER] [--rows 240] [--rounds 2] [--onnx]
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from scipy import stats

from mdialeval.config.train import TrainConfig
from mdialeval.model.batches import Batch, collate
from mdialeval.model.evaluator import Evaluator
from mdialeval.model.markup import encode_pairs
from mdialeval.model.onnx_graph import OnnxEvaluator, export_onnx
from mdialeval.readers.dailydialogpp import DailyDialogPlusPlus
from mdialeval.readers.xdial import XDial
from mdialeval.records import Example
from mdialeval.tasks.sensibleness import Sensibleness
from mdialeval.train.evaluators import train_evaluator

PADDED, BATCH, SEED = 258, 16, 13
LANGUAGES = ("en", "zh", "es", "de", "fr", "ja")


def rated_rows(data: Path, n: int) -> list[Example]:
    """Rows of dailydialog-zhao: every language's first ones, in equal numbers."""
    by_language: dict[str, list[Example]] = {code: [] for code in LANGUAGES}
    for item in XDial().read([data / "xdial" / "dailydialog-zhao.csv"]):
        if isinstance(item, Example) and item.language in by_language:
            by_language[item.language].append(item)
    return [row for rows in by_language.values() for row in rows[: n // len(LANGUAGES)]]


def small_evaluator(data: Path, folder: Path) -> None:
    """An evaluator of sensibleness from a few pairs: its speed is that of any other."""
    items = DailyDialogPlusPlus().read([data / "dailydialogpp" / "dev.json"])
    pairs = list(Sensibleness().pairs(items, SEED))
    train_evaluator(pairs, "sensibleness", TrainConfig(max_pairs=96, checks=1), folder, SEED)


def plain_scores(evaluator: Evaluator, examples: Sequence[Example]) -> list[float]:
    """The evaluator's own network, one pair a row, padded to 258, batch 16."""
    rows = encode_pairs(evaluator.tokenizer, examples, evaluator.settings.markup)
    attention, scores = evaluator.network.architecture.attention, list[float]()
    start, pad = evaluator.tokenizer.cls_token_id, evaluator.tokenizer.pad_token_id
    with torch.inference_mode():
        for first in range(0, len(rows), BATCH):
            part = [[i] for i in range(first, min(first + BATCH, len(rows)))]
            batch = padded(collate(rows, part, start, pad, attention), pad)
            scores += evaluator.network.to_scores(evaluator.network(batch)).tolist()
    return scores


def padded(batch: Batch, pad: int) -> Batch:
    """A batch with every sequence as long as the limit."""
    room = (0, PADDED - batch.input_ids.shape[1])
    ids, positions, owners = (
        torch.nn.functional.pad(part, room, value=fill)
        for part, fill in zip((batch.input_ids, batch.positions, batch.owners), (pad, 0, -1), strict=True)
    )
    return batch._replace(input_ids=ids, positions=positions, owners=owners)


def agreement(scores: Sequence[float], examples: Sequence[Example]) -> dict[str, float]:
    """Spearman's rho with the mean human rating, per language."""
    found = {}
    for code in LANGUAGES:
        rows = [
            (s, statistics.fmean(e.ratings.values()))
            for s, e in zip(scores, examples, strict=True)
            if e.language == code
        ]
        found[code] = float(stats.spearmanr(*zip(*rows, strict=True)).statistic)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--evaluator", type=Path, help="a trained evaluator; a small one is trained where not given")
    parser.add_argument("--rows", type=int, default=240)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--onnx", action="store_true", help="also the exported graph")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    examples = rated_rows(arguments.data, arguments.rows)
    with tempfile.TemporaryDirectory() as place:
        folder = arguments.evaluator or Path(place) / "evaluator"
        if arguments.evaluator is None:
            small_evaluator(arguments.data, folder)
        evaluator = Evaluator.from_pretrained(folder, precision="fp32")
        sides: dict[str, Callable[[], list[float]]] = {
            "ours": lambda: [p.score or 0.0 for p in evaluator.predict(examples)],
            "plain": lambda: plain_scores(evaluator, examples),
        }
        if arguments.onnx:
            export_onnx(folder, Path(place) / "onnx", examples[:: max(1, len(examples) // 60)])
            exported = OnnxEvaluator(Path(place) / "onnx")
            sides["onnx"] = lambda: [p.score or 0.0 for p in exported.predict(examples)]
        speeds: dict[str, list[float]] = {name: [] for name in sides}
        scores: dict[str, list[float]] = {}
        for turn in range(arguments.rounds):
            for name, side in sides.items():
                started = time.monotonic()
                scores[name] = side()
                speeds[name].append(len(examples) / (time.monotonic() - started))
            print(f"round {turn + 1}: " + ", ".join(f"{n} {s[-1]:.1f} pairs/s" for n, s in speeds.items()), flush=True)
    gaps = {n: max(abs(a - b) for a, b in zip(found, scores["plain"], strict=True)) for n, found in scores.items()}
    rhos = {name: agreement(found, examples) for name, found in scores.items()}
    apart = max(abs(rhos["ours"][code] - rhos["plain"][code]) for code in LANGUAGES)
    print(json.dumps({
        "name": "score",
        "ours": round(statistics.median(speeds["ours"]), 2),
        "peer": round(statistics.median(speeds["plain"]), 2),
        "unit": "pairs/s",
        "ratio": round(statistics.median(a / b for a, b in zip(speeds["ours"], speeds["plain"], strict=True)), 2),
        "equal": gaps["ours"] < 1e-3 and apart < 0.002,
        "largest_difference": gaps["ours"],
        "spearman_difference": apart,
        "rows": len(examples),
        **{n: round(statistics.median(s), 2) for n, s in speeds.items() if n == "onnx"},
        **{f"{n}_difference": gap for n, gap in gaps.items() if n == "onnx"},
    }))  # fmt: skip


if __name__ == "__main__":
    main()
