"""Ranking six languages from the shell: one `mdialeval rank` against `comet-score`, everything from start to scores.

The same local COMET checkpoint and the same 300 sources and 1,800 translations on both sides, each command in a process
of its own that starts, loads, scores and writes.  `comet-score` computes in half precision, also on a CPU, so its
scores differ from float32 in the fourth digit (`rank.py` compares both).  It is run once a language, and once with all
six files in one command (`-t one two ...`), the best it can do; both are shown.

    python scripts/benchmarks/rank_commands.py [--sources 300] [--languages 6] [--rounds 1] [--checkpoint DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
import yaml

from mdialeval.records import QualityScore, turn_id
from mdialeval.tables import read_parquet
from rank import model_of, sources, translations

CODES = ("pt", "es", "fr", "de", "it", "nl", "pl", "sv", "fi", "ro")


def save(folder: Path) -> Path:
    """The checkpoint that ``rank.py`` makes, as a COMET folder; the file of its weights."""
    model = model_of(None)
    plain = (str, int, float, list, type(None))
    settings = {key: value for key, value in dict(model.hparams).items() if isinstance(value, plain)}
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "hparams.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    path = folder / "checkpoints" / "model.ckpt"
    content = {"state_dict": model.state_dict(), "hyper_parameters": settings, "pytorch-lightning_version": "2.0.0"}
    torch.save(content | {"epoch": 1, "global_step": 1}, path)
    return path


def run(command: Sequence[str], folder: Path) -> float:
    """Seconds on the clock of one command.

    Raises:
        SystemExit: it failed; its last lines.
    """
    started = time.perf_counter()
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    return time.perf_counter() - started


def written(folder: Path, turns: list[str], targets: dict[str, list[str]], checkpoint: Path) -> None:
    """The inputs of both sides: text files for `comet-score`, a corpus and given translations for `mdialeval`."""
    (folder / "src.txt").write_text("\n".join(turns) + "\n", encoding="utf-8")
    for code, texts in targets.items():
        (folder / f"mt.{code}.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    corpus = [{"id": f"d{i}", "language": "en", "turns": [{"text": text}]} for i, text in enumerate(turns)]
    given = [
        {"id": f"d{i}#0", "language": code, "hypothesis": text}
        for code, texts in targets.items()
        for i, text in enumerate(texts)
    ]
    for name, rows in (("corpus.jsonl", corpus), ("given.jsonl", given)):
        (folder / name).write_text("\n".join(json.dumps(row) for row in rows) + "\n", encoding="utf-8")
    config = {
        "run": "rank",
        "runs": "runs",
        "offline": True,
        "corpus": {"path": "corpus.jsonl"},
        "translate": {
            "routes": dict.fromkeys(targets, "given"),
            "options": {"given": {"path": str(folder / "given.jsonl")}},
        },
        "rank": {
            "estimator": "comet",
            "options": {"model": str(checkpoint.parent.parent)},
            "k": 50,
            "leave_out": [],
        },
    }
    (folder / "rank.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


def peer_scores(folder: Path, names: Sequence[str]) -> list[float]:
    """The segments' scores in the files that `comet-score --to_json` wrote, file by file."""
    found: list[float] = []
    for name in names:
        content = json.loads((folder / name).read_text(encoding="utf-8"))
        found += [row["COMET"] for rows in content.values() for row in rows]
    return found


def our_scores(folder: Path, codes: Sequence[str], count: int) -> list[float]:
    """Those of the `estimate` stage, language by language, in the order of the sources."""
    (stage,) = (folder / "runs" / "rank").glob("estimate-*")
    rows = [row for path in sorted(stage.glob("*.parquet")) for row in read_parquet(path, QualityScore)]
    by_id = {(row.language, row.id): row.score for row in rows}
    found = [by_id[code, turn_id(f"d{i}", 0)] for code in codes for i in range(count)]
    return [score for score in found if score is not None]


def main() -> None:
    """Run every side and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=int, default=300)
    parser.add_argument("--languages", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--checkpoint", type=Path, help="a COMET folder with hparams.yaml and checkpoints/model.ckpt")
    options = parser.parse_args()
    codes = CODES[: options.languages]
    turns = sources(options.sources)
    targets = {code: translations(turns, at) for at, code in enumerate(codes)}
    comet = [str(Path(sys.executable).parent / "comet-score"), "--gpus", "0", "--quiet", "-s", "src.txt"]
    seconds: dict[str, list[float]] = {"mdialeval": [], "comet-score, a command a language": [], "in one command": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checkpoint = options.checkpoint / "checkpoints" / "model.ckpt" if options.checkpoint else save(folder / "comet")
        written(folder, turns, targets, checkpoint)
        files = [f"mt.{code}.txt" for code in codes]
        model = ["--model", str(checkpoint)]
        sides: dict[str, Callable[[], float]] = {
            "comet-score, a command a language": lambda: sum(
                run([*comet, "-t", file, *model, "--to_json", f"{file}.json"], folder) for file in files
            ),
            "in one command": lambda: run([*comet, "-t", *files, *model, "--to_json", "all.json"], folder),
            "mdialeval": lambda: run([sys.executable, "-m", "mdialeval", "rank", "rank.yaml", "--quiet"], folder),
        }
        for number in range(options.rounds):
            for side, call in sides.items():
                if side == "mdialeval":
                    for stage in folder.glob(f"runs/{'*' if number else 'none'}"):
                        stage.rename(folder / f"old-{number}-{stage.name}")
                seconds[side].append(call())
        peer = peer_scores(folder, [f"{file}.json" for file in files])
        ours = our_scores(folder, codes, len(turns))
    difference = max(abs(a - b) for a, b in zip(ours, peer, strict=True))
    pairs = len(turns) * len(codes)
    median = {side: statistics.median(values) for side, values in seconds.items()}
    print(f"{pairs} pairs, {len(turns)} sources, {len(codes)} languages, start and loading included")
    for side, value in median.items():
        print(f"{side:>36}: {value:6.1f} s, {pairs / value:7.1f} pairs/s")
    print(f"largest difference of a score: {difference:.2e}")
    own, each, one = median["mdialeval"], median["comet-score, a command a language"], median["in one command"]
    result = {"name": "rank_commands", "ours": pairs / own, "peer": pairs / each, "unit": "pairs/s"}
    ratios = {"ratio": each / own, "ratio_to_one_command": one / own}
    print(json.dumps(result | ratios | {"equal": difference < 1e-3, "difference": difference}))


if __name__ == "__main__":
    main()
