"""What the graph branch costs: training, scoring and memory with graphs against the same without, on one batch size.

Both sides train the default recipe on the same pairs of DailyDialog++ dev and score the same held-out pairs, each in a
process of its own, so that the peak of its memory (encoder, optimiser and all) can be told.  Graphs are parsed before
the clock starts, as in a run, where they are a stage of their own; making tensors of them is inside.  The clock counts
CPU seconds of the process, so that other work on the machine does not disturb; training counts from the first step on.

    python scripts/benchmarks/graph_overhead.py [--data ../shared/data] [--pairs 192] [--scored 480] [--rounds 3]
        [--batch-size 32] [--set graph.fusion=gate]
"""

from __future__ import annotations

import argparse
import json
import logging
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mdialeval.config.load import parse
from mdialeval.config.train import TrainConfig
from mdialeval.graphs.parsing import parse_texts
from mdialeval.graphs.protocol import PARSERS
from mdialeval.graphs.turns import PairGraphs
from mdialeval.model.evaluator import Evaluator
from mdialeval.readers.dailydialogpp import DailyDialogPlusPlus
from mdialeval.records import Example, Graph, TrainingPair, turn_id
from mdialeval.registry import create
from mdialeval.tables import read_parquet, write_parquet
from mdialeval.tasks.sensibleness import Sensibleness
from mdialeval.train.evaluators import train_evaluator

SEED = 13
LIMITS = {"train": 1.6, "score": 1.4, "memory": 1.3}


def one_side(folder: Path, config: TrainConfig, n_train: int) -> dict[str, float]:
    """CPU seconds of training and scoring, and the peak of memory in MiB; runs in a process of its own."""
    pairs = list(read_parquet(folder / "pairs.parquet", TrainingPair))
    graphs = {g.id: g for g in read_parquet(folder / "graphs.parquet", Graph)}
    learned, scored = pairs[:n_train], pairs[n_train:]
    with tempfile.TemporaryDirectory() as place:
        by_pair = {(p.id, p.language): _graphs(p, graphs) for p in learned}
        marks: list[float] = []
        train_evaluator(
            *(learned, "sensibleness", config, Path(place) / "e", SEED),
            on_step=lambda _: marks.append(time.process_time()),
            graphs=by_pair,
        )
        evaluator = Evaluator.from_pretrained(Path(place) / "e", batch_size=config.batch_size)
    items = [Example(p.id, p.language, p.context, p.response) for p in scored]
    turns = {
        turn_id(e.id, i): graphs[t.text] for e in items for i, t in enumerate((*e.context, e.response)) if t is not None
    }
    evaluator.predict(items[:32], graphs=turns)
    started = time.process_time()
    evaluator.predict(items, graphs=turns)
    seconds = time.process_time() - started
    return {
        "train": marks[-1] - marks[0],
        "score": seconds,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _graphs(pair: TrainingPair, graphs: dict[str, Graph]) -> PairGraphs:
    return PairGraphs(tuple(graphs[t.text] for t in pair.context), graphs[pair.response.text])


def prepare(data: Path, folder: Path, count: int) -> int:
    """Write the pairs, whole contexts each, and the graphs of their turns; how many pairs."""
    items = DailyDialogPlusPlus().read([data / "dailydialogpp" / "dev.json"])
    pairs = list(Sensibleness().pairs((item for _, item in zip(range(count), items, strict=False)), SEED))
    pairs.sort(key=lambda p: p.group)
    texts = list(dict.fromkeys(t.text for p in pairs for t in (*p.context, p.response)))
    parsed = parse_texts(create("graph parser", PARSERS, "dependency", {}), texts)
    rows = [
        Graph(text, g.top, g.concepts, g.edges, g.constants, g.status) for text, g in zip(texts, parsed, strict=True)
    ]
    write_parquet(folder / "pairs.parquet", pairs, TrainingPair)
    write_parquet(folder / "graphs.parquet", rows, Graph)
    return len(pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--pairs", type=int, default=192)
    parser.add_argument("--scored", type=int, default=480)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of train")
    parser.add_argument("--side", choices=("text", "graph"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    if arguments.side:
        settings = {"dev_share": 0.1, "checks": 1, "batch_size": arguments.batch_size}
        use = {"graph": {"use": "joint"}} if arguments.side == "graph" else {}
        changes = [f"train.{s}" for s in arguments.set if arguments.side == "graph" or not s.startswith("graph.")]
        config = parse({"train": settings | use}, changes).train
        print(json.dumps(one_side(arguments.folder, config, arguments.pairs)))
        return
    rounds: list[dict[str, dict[str, float]]] = []
    with tempfile.TemporaryDirectory() as folder:
        n = prepare(arguments.data, Path(folder), arguments.pairs + arguments.scored)
        for _ in range(arguments.rounds):
            sides = {}
            for side in ("text", "graph"):
                command = [sys.executable, __file__, *sys.argv[1:], "--side", side, "--folder", folder]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                sides[side] = json.loads(done.stdout.strip().splitlines()[-1])
                shown = "   ".join(f"{k} {v:8.2f}" for k, v in sides[side].items())
                print(f"{side:6s} {shown}   (CPU seconds, CPU seconds, MiB)", flush=True)
            rounds.append(sides)
    ratios = {k: statistics.median(r["graph"][k] / r["text"][k] for r in rounds) for k in LIMITS}
    summary = {
        "name": "graph_overhead",
        "ours": round(statistics.median(r["graph"]["train"] for r in rounds), 2),
        "peer": round(statistics.median(r["text"]["train"] for r in rounds), 2),
        "unit": "CPU seconds of training",
        "ratio": round(ratios["train"], 3),
        "score_ratio": round(ratios["score"], 3),
        "memory_ratio": round(ratios["memory"], 3),
        "limits": LIMITS,
        "within": all(ratios[k] <= LIMITS[k] for k in LIMITS),
        "pairs": arguments.pairs,
        "scored": n - arguments.pairs,
        "batch_size": arguments.batch_size,
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
