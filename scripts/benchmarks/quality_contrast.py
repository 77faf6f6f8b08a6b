"""Contrast set: do graph scores tell rewrites that keep the meaning from those that change it?

    python scripts/benchmarks/quality_contrast.py [--file data/contrast/rewrites.jsonl] [--parser dependency]

Every pair of texts is scored by the graph measures (parsed on the fly), by chrF and by the cosine of the embedded
encoder's mean vectors.  AUC is the probability that a rewrite with the same meaning scores above one with another
meaning, ties counting half; .5 is chance.  Also by kind of change, against all rewrites that keep the meaning.  AMR has
no tense, so the main number leaves the ``tense`` rows out.  The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from sacrebleu.metrics.chrf import CHRF
from transformers import AutoModel, AutoTokenizer

from mdialeval.assets import embedded_encoder
from mdialeval.graphs.faithfulness import MEASURES, compare
from mdialeval.graphs.protocol import PARSERS
from mdialeval.registry import create

CHANGES = ("role_swap", "negation", "tense")


def auc(positives: Sequence[float], negatives: Sequence[float]) -> float:
    """P(positive > negative) + P(equal) / 2, in [0, 1]."""
    wins = sum((p > n) + 0.5 * (p == n) for p in positives for n in negatives)
    return wins / (len(positives) * len(negatives))


def graph_scores(pairs: Sequence[tuple[str, str]], name: str) -> dict[str, list[float]]:
    """Score of each pair by each graph measure; a pair without graphs counts as 0 and is said."""
    parser = create("graph parser", PARSERS, name)
    graphs = parser.parse([text for pair in pairs for text in pair])
    found: dict[str, list[float]] = {}
    for measure in MEASURES:
        results = [compare(graphs[i], graphs[i + 1], measure) for i in range(0, len(graphs), 2)]
        unscored = sum(result.f1 is None for result in results)
        if unscored:
            print(f"{measure}: {unscored} pairs without a score count as 0")
        found[measure] = [result.f1 or 0.0 for result in results]
    return found


def cosine_scores(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Cosine of the mean vectors of the embedded encoder."""
    folder = embedded_encoder()
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    sides = []
    for side in (0, 1):
        batch = tokenizer([f"query: {pair[side]}" for pair in pairs], padding=True, return_tensors="pt")
        with torch.inference_mode():
            states = model(**batch).last_hidden_state  # (B, T, D)
        mask = batch["attention_mask"].unsqueeze(-1)
        sides.append(torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=-1))
    return [float(x) for x in (sides[0] * sides[1]).sum(-1)]


def table(rows: Sequence[Mapping[str, object]], scores: Mapping[str, Sequence[float]]) -> dict[str, dict[str, float]]:
    """AUC of every measure: without tense, with it, and against each kind of change."""
    same = [i for i, row in enumerate(rows) if row["same_meaning"]]
    kinds = {kind: [i for i, row in enumerate(rows) if row["kind"] == kind] for kind in CHANGES}
    groups = {"auc": kinds["role_swap"] + kinds["negation"], "with_tense": sum(kinds.values(), []), **kinds}  # noqa: RUF017
    return {
        name: {group: auc([values[i] for i in same], [values[i] for i in other]) for group, other in groups.items()}
        for name, values in scores.items()
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--file", type=Path, default=Path("data/contrast/rewrites.jsonl"))
    arguments.add_argument("--parser", default="dependency")
    given = arguments.parse_args()
    rows = [json.loads(line) for line in given.file.read_text(encoding="utf-8").splitlines() if line.strip()]
    pairs = [(row["source"], row["rewrite"]) for row in rows]
    chrf = CHRF()
    scores: dict[str, Sequence[float]] = dict(graph_scores(pairs, given.parser))
    scores["chrf"] = [chrf.sentence_score(rewrite, [source]).score for source, rewrite in pairs]
    scores["cosine"] = cosine_scores(pairs)
    found = table(rows, scores)
    print(f"{'measure':10} {'AUC':>6} {'+tense':>7} {'swap':>6} {'neg.':>6} {'tense':>6}   ({len(rows)} rewrites)")
    for name, row in found.items():
        print(
            f"{name:10} {row['auc']:6.3f} {row['with_tense']:7.3f} {row['role_swap']:6.3f} {row['negation']:6.3f} "
            f"{row['tense']:6.3f}"
        )
    best, peer = max(found[m]["auc"] for m in MEASURES), max(found["chrf"]["auc"], found["cosine"]["auc"])
    unit = "AUC of same against other meaning, in [0, 1], higher is better"
    print(
        json.dumps(
            {
                "name": "quality_contrast",
                "ours": best,
                "peer": peer,
                "unit": unit,
                "ratio": best / peer,
                "equal": None,
                "table": found,
            }
        )
    )


if __name__ == "__main__":
    main()
