"""Quality of a graph parser: Smatch against gold AMR, speed, and whether odd text ever gives an invalid graph.

    python scripts/benchmarks/quality_amr.py [--data ../shared/data] [--file lpp-v1.6-dev.txt] [--parser dependency]

Every PENMAN file of ``DATA/amr`` that is named (default: the development part) is parsed from its ``::snt`` sentences.
The peer is a bag of content words: one node a lemma under ``and``, the least that a parser must beat.  Smatch is exact.
The odd strings are generated: empty, emoji, control characters, long turns, addresses, other scripts, open quotes.  The
last line is one JSON object with one number a file.
"""

from __future__ import annotations

import argparse
import json
import random
import string
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mdialeval.graphs.penman_codec import decode, encode, read_penman
from mdialeval.graphs.protocol import PARSERS, GraphParser
from mdialeval.graphs.smatch import corpus_smatch, smatch
from mdialeval.graphs.validate import graph_problem
from mdialeval.records import Graph
from mdialeval.registry import create

_FUNCTION = """
the a an to of in on at is are was were be been am do does did have has had that this it for with and but or as by will
would shall if so not
"""
_FUNCTION_WORDS = frozenset(_FUNCTION.split())
_PIECES = r"""
I you the cat not n't and but or if because who what 's to be is was have 12 3.5 $5 10:30 May Monday very than as no one
nothing please let's oh hi http://a.b/c?d=e #NAME# __eou__ <speaker1> 😂 ( ) [ ] " ' “ ” — ... ? ! , ; : - / ~1 :ARG0
(a / b) never six years old could must said which whose today 天 да été wasn't \ %s {x} a.b@c.de
"""


def bag(text: str) -> Graph:
    """The content words of a sentence under ``and``."""
    words = [w for w in "".join(c if c.isalnum() else " " for c in text.lower()).split() if w not in _FUNCTION_WORDS]
    words = words or ["thing"]
    edges = tuple((0, f"op{i}", i) for i in range(1, len(words) + 1))
    return Graph("", 0, ("and", *words), edges)


def odd_strings(n: int, seed: int) -> list[str]:
    """Text that people and corpora really contain, and worse."""
    rng, pieces = random.Random(seed), _PIECES.split()
    fixed = ["", " ", "\n", "Hmm...", "😂😂", "lol ok", "Hi.\nHow are you?", "?!", "\x00\x07", "x\u00a0y \u200d", '"']
    fixed += ["word " * 200, "a" * 5000]
    made = list(fixed)
    while len(made) < n:
        kind = rng.random()
        if kind < 0.6:
            made.append(" ".join(rng.choices(pieces, k=rng.randint(1, 25))))
        elif kind < 0.65:
            made.append(" ".join(rng.choices(pieces, k=200)))
        elif kind < 0.8:
            made.append("".join(rng.choices(string.printable, k=rng.randint(1, 80))))
        else:
            odd = (chr(rng.choice((rng.randint(32, 0x2FF), rng.randint(0x370, 0xD7FF)))) for _ in range(12))
            made.append("".join(odd))
    return made[:n]


def invalid(parser: GraphParser, texts: Sequence[str]) -> tuple[int, Counter[str]]:
    """How many graphs are broken or do not survive writing and reading, and how often each status occurs."""
    graphs = parser.parse(texts)
    scored = [g for g in graphs if g.status in ("ok", "truncated")]
    broken = sum(bool(graph_problem(g)) or decode(encode(g)).status not in ("ok", "empty") for g in scored)
    return broken + (len(graphs) != len(texts)), Counter(g.status for g in graphs)


def measure(parser: GraphParser, path: Path, rounds: int) -> dict[str, Any]:
    """Smatch of the parser and of the bag on one file, and the sentences a second."""
    entries = [entry for entry in read_penman(path) if entry.sentence and entry.graph.status == "ok"]
    texts = [entry.sentence for entry in entries]
    graphs, seconds = parser.parse(texts), []
    for _ in range(rounds):
        started = time.perf_counter()
        parser.parse(texts)
        seconds.append(time.perf_counter() - started)
    row: dict[str, Any] = {"n": len(entries), "sentences_per_second": len(texts) / min(seconds)}
    for name, parsed in (("ours", graphs), ("bag", [bag(text) for text in texts])):
        total = corpus_smatch(smatch(entry.graph, graph) for entry, graph in zip(entries, parsed, strict=True))
        if total.counts is None:
            row[name] = None
            continue
        row[name] = {
            "precision": total.counts.precision,
            "recall": total.counts.recall,
            "f1": total.counts.f1,
            "low": total.low,
            "high": total.high,
            "scored": total.n_scored,
            "optimal": total.n_optimal,
        }
    return row


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", type=Path, default=Path("../shared/data"))
    arguments.add_argument("--file", action="append", default=None, help="a PENMAN file of DATA/amr; may be repeated")
    arguments.add_argument("--parser", default="dependency")
    arguments.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="an option of the parser")
    arguments.add_argument("--odd", type=int, default=2000, help="odd strings")
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    parser = create("graph parser", PARSERS, given.parser, dict(option.split("=", 1) for option in given.option))
    table = {}
    print(f"{'file':24} {'n':>5} {'P':>6} {'R':>6} {'F1':>6}  {'95 %':13} {'bag F1':>6} {'sent/s':>7}")
    for name in given.file or ["lpp-v1.6-dev.txt"]:
        row = table[name] = measure(parser, given.data / "amr" / name, given.rounds)
        ours, base = row["ours"], row["bag"]
        print(
            f"{name:24} {ours['scored']:5} {ours['precision']:6.3f} {ours['recall']:6.3f} {ours['f1']:6.3f}  "
            f"{ours['low']:.3f}-{ours['high']:.3f}   {base['f1']:6.3f} {row['sentences_per_second']:7.0f}"
        )
    broken, statuses = invalid(parser, odd_strings(given.odd, seed=1))
    print(f"odd strings: {given.odd}, invalid graphs: {broken}, statuses: {dict(statuses)}")
    first = next(iter(table.values()))
    print(
        json.dumps(
            {
                "name": "quality_amr",
                "ours": first["ours"]["f1"],
                "peer": first["bag"]["f1"],
                "unit": "Smatch F1 in [0, 1], higher is better",
                "ratio": first["ours"]["f1"] / first["bag"]["f1"],
                "equal": None,
                "parser": parser.identity,
                "sentences_per_second": first["sentences_per_second"],
                "invalid": broken,
                "table": table,
            }
        )
    )


if __name__ == "__main__":
    main()
