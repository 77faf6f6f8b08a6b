"""Scoring with one local COMET checkpoint: this package against what `comet-score` does after loading it.

`comet-score -s src -t t1 ... t6` turns on COMET's embedding cache and calls the model's `predict` once a translation
file; both sides here start with the same loaded model.  Sources are dialogue turns, the six "languages" are texts of
the same lengths made from them, so that nothing has to be downloaded.  Without --checkpoint a regression model over the
embedded encoder is made, with random weights in its head.

    python scripts/benchmarks/rank.py [--sources 300] [--languages 6] [--rounds 2] [--checkpoint DIR]
"""

from __future__ import annotations

import argparse
import copy
import json
import logging
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from comet.models import ReferencelessRegression

from mdialeval.assets import embedded_encoder
from mdialeval.rank.comet import find_checkpoint, load_checkpoint
from mdialeval.rank.score import CometPairs

DIALOGUES = Path(__file__).resolve().parents[2] / "data" / "dialogues-en.jsonl"


def sources(count: int) -> list[str]:
    """English turns of the project's own dialogues."""
    lines = DIALOGUES.read_text(encoding="utf-8").splitlines()
    turns = [turn["text"] for line in lines for turn in json.loads(line)["turns"]]
    return turns[:count]


def translations(turns: list[str], language: int) -> list[str]:
    """Texts of about the same lengths that differ from language to language: words rotated."""
    found = []
    for turn in turns:
        words = turn.split()
        cut = language % max(len(words), 1) + 1
        found.append(" ".join([*words[cut:], *words[:cut], str(language)]))
    return found


def model_of(checkpoint: Path | None) -> Any:
    """The checkpoint's model, or one with random weights in the head."""
    if checkpoint is not None:
        return load_checkpoint(find_checkpoint(checkpoint)).eval()
    torch.manual_seed(0)
    return ReferencelessRegression(
        encoder_model="BERT", pretrained_model=str(embedded_encoder()), local_files_only=True, layer="mix", pool="avg",
        hidden_sizes=[256, 64],
    ).eval()  # fmt: skip


def peer(model: Any, turns: list[str], targets: list[list[str]]) -> list[float]:
    """As `comet-score` does after its cast, with its default batch size."""
    scores: list[float] = []
    for target in targets:
        samples = [{"src": s, "mt": h} for s, h in zip(turns, target, strict=True)]
        scores += model.predict(samples, batch_size=16, gpus=0, progress_bar=False).scores
    return scores


def ours(model: Any, turns: list[str], targets: list[list[str]]) -> list[float]:
    """All pairs in one call."""
    return CometPairs(model).score([pair for target in targets for pair in zip(turns, target, strict=True)])


def timed(side: Callable[..., list[float]], *arguments: Any) -> tuple[float, float, list[float]]:
    """Seconds on the clock and of processor time (other programs on the machine do not count there), and the scores."""
    clock, processor = time.perf_counter(), time.process_time()
    found = side(*arguments)
    return time.perf_counter() - clock, time.process_time() - processor, found


def main() -> None:
    """Run both sides in turn and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=int, default=300)
    parser.add_argument("--languages", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--checkpoint", type=Path)
    options = parser.parse_args()
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore")
    model = model_of(options.checkpoint)
    turns = sources(options.sources)
    targets = [translations(turns, language) for language in range(options.languages)]
    pairs = len(turns) * len(targets)
    sides = {"comet-score": peer, "its predict in float32": peer, "mdialeval": ours}
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    processor: dict[str, list[float]] = {name: [] for name in sides}
    scores: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        for name, side in sides.items():
            used = copy.deepcopy(model)
            if name == "comet-score":
                used.half()
            if side is peer:
                used.set_embedding_cache()
            spent, worked, scores[name] = timed(side, used, turns, targets)
            seconds[name].append(spent)
            processor[name].append(worked)
    difference = max(abs(a - b) for a, b in zip(scores["mdialeval"], scores["its predict in float32"], strict=True))
    halved = max(abs(a - b) for a, b in zip(scores["mdialeval"], scores["comet-score"], strict=True))
    rate = {name: pairs / statistics.median(values) for name, values in seconds.items()}
    work = {name: statistics.median(values) for name, values in processor.items()}
    print(f"{pairs} pairs, {len(turns)} sources, {len(targets)} languages")
    for name in sides:
        print(f"{name:>22}: {rate[name]:8.1f} pairs/s, {work[name]:6.1f} s of processor time")
    print(f"largest difference of a score: {difference:.2e} to float32, {halved:.2e} to half precision")
    own, half, full = (rate[name] for name in ("mdialeval", "comet-score", "its predict in float32"))
    result = {"name": "rank", "ours": own, "peer": half, "unit": "pairs/s", "ratio": own / half}
    more = {"ratio_to_float32": own / full, "ratio_of_processor_time": work["comet-score"] / work["mdialeval"]}
    print(json.dumps(result | more | {"equal": difference < 1e-4, "difference": difference}))


if __name__ == "__main__":
    main()
