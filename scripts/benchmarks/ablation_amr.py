"""Does the graph branch help?  One table of its variants, several seeds, mean and spread.

Every variant learns the same pairs of DailyDialog++ dev (true next turns against random and adversarial responses) with
the recipe of ``configs/ablation-amr.yaml`` and is checked on DailyDialog++ test (accuracy and AUC against random and
against adversarial responses, both classes counting alike) and on rated sets (Spearman, mean over the languages).

    python scripts/benchmarks/ablation_amr.py [--data ../shared/data] [--config configs/ablation-amr.yaml]
        [--seeds 2] [--pairs 1500] [--test 600] [--rated 300] [--only NAME ...] [--set epochs=1]

The last line is one JSON object; ``differences`` are to the text alone, seed by seed.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mdialeval.agreement.agree import correlate
from mdialeval.cache import Cache
from mdialeval.config.load import load
from mdialeval.config.train import TrainConfig
from mdialeval.graphs.parsing import parse_texts
from mdialeval.graphs.protocol import PARSERS, GraphParser
from mdialeval.graphs.turns import PairGraphs
from mdialeval.model.evaluator import Evaluator
from mdialeval.readers.dailydialogpp import DailyDialogPlusPlus
from mdialeval.readers.xdial import XDial
from mdialeval.records import Example, Graph, turn_id, turns_of
from mdialeval.registry import create
from mdialeval.tasks.protocol import TASKS
from mdialeval.train.dev import rank_agreement
from mdialeval.train.evaluators import train_evaluator
from mdialeval.train.plan import limit_pairs

TEXT = "text only"
VARIANTS: dict[str, dict[str, object]] = {
    TEXT: {"use": "none"},
    "graph only": {"only": True, "contrastive": "none"},
    "gate": {"fusion": "gate"},
    "concat": {"fusion": "concat"},
    "residual": {"fusion": "residual"},
    "residual, no gate": {"fusion": "residual", "gate": "none"},
    "residual, no contrastive": {"fusion": "residual", "contrastive": "none"},
    "residual, separate": {"fusion": "residual", "use": "separate"},
}
"""Changes to the configuration's ``train.graph``."""

RATED = ("dailydialog-zhao", "dailydialog-grade", "persona-usr")


def with_graph(config: TrainConfig, changes: dict[str, object]) -> TrainConfig:
    """The configuration with another graph branch."""
    return TrainConfig.model_validate(config.model_dump() | {"graph": config.graph.model_dump() | changes})


def graphs_by_turn(examples: Sequence[Example], parser: GraphParser, cache: Cache) -> dict[str, Graph]:
    """The graphs of the English examples' turns by turn id."""
    turns = [
        (turn_id(e.id, i), turn.text) for e in examples if e.language == "en" for i, turn in enumerate(turns_of(e))
    ]
    return dict(zip((name for name, _ in turns), parse_texts(parser, [t for _, t in turns], cache), strict=True))


def accuracies(examples: Sequence[Example], scores: Sequence[float | None]) -> dict[str, float | None]:
    """Accuracy at .5 (both classes counting alike) and AUC against each kind of negatives.

    A score that has learned an order and not yet its threshold has an accuracy near .5 and a better AUC.
    """
    by_kind: dict[str, list[float]] = {}
    for example, score in zip(examples, scores, strict=True):
        if score is not None:
            by_kind.setdefault(example.system, []).append(score)
    good = np.array(by_kind["positive"])
    found: dict[str, float | None] = {}
    for kind in ("random", "adversarial"):
        bad = np.array(by_kind[kind])
        found[kind] = float((good > 0.5).mean() + (bad <= 0.5).mean()) / 2
        labels = np.concatenate([np.ones(len(good)), np.zeros(len(bad))])
        found[f"{kind} AUC"] = rank_agreement(np.concatenate([good, bad]), labels)[0]
    return found


def spearman(evaluator: Evaluator, examples: Sequence[Example], graphs: dict[str, Graph], name: str) -> float | None:
    """Mean over the languages of Spearman's rho with the ratings; None where it is undefined in all of them."""
    predictions = evaluator.predict(examples, graphs=graphs)
    rows = correlate(predictions, examples, dataset=name, statistics=["spearman"], resamples=0)
    codes = {example.language for example in examples}
    values = [row.value for row in rows if row.language in codes and row.value is not None]
    return statistics.fmean(values) if values else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--config", type=Path, default=Path("configs/ablation-amr.yaml"))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=1500, help="training pairs")
    parser.add_argument("--test", type=int, default=600, help="examples of DailyDialog++ test")
    parser.add_argument("--rated", type=int, default=300, help="rated examples a set, over all languages")
    parser.add_argument("--only", nargs="*", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of train")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    chosen = load(arguments.config, [f"train.{s}" for s in arguments.set])
    config = chosen.train
    reader, place = DailyDialogPlusPlus(), arguments.data / "dailydialogpp"
    learned = [e for e in reader.read([place / "dev.json"]) if isinstance(e, Example)]
    test = [e for e in reader.read([place / "test.json"]) if isinstance(e, Example)][: arguments.test]
    rated = {
        name: list(XDial(languages=("en", "de", "zh")).read([path]))[: arguments.rated]
        for name in RATED
        if (path := arguments.data / "xdial" / f"{name}.csv").exists()
    }
    recipe = config.dimensions["sensibleness"]
    amr: GraphParser = create("graph parser", PARSERS, chosen.parse.parser, chosen.parse.options)
    table: dict[str, list[dict[str, float | None]]] = {name: [] for name in arguments.only}
    with tempfile.TemporaryDirectory() as folder, Cache(Path(folder) / "parse.sqlite", amr.identity) as cache:
        checked = {"test": graphs_by_turn(test, amr, cache)}
        checked |= {name: graphs_by_turn(examples, amr, cache) for name, examples in rated.items()}
        for seed in range(1, arguments.seeds + 1):
            made = create("task", TASKS, recipe.task or "sensibleness", recipe.options).pairs(learned, seed)
            pairs = limit_pairs(list(made), arguments.pairs, seed)
            texts = list(dict.fromkeys(t.text for p in pairs for t in (*p.context, p.response)))
            by_text = dict(zip(texts, parse_texts(amr, texts, cache), strict=True))
            graphs = {
                (p.id, p.language): PairGraphs(tuple(by_text[t.text] for t in p.context), by_text[p.response.text])
                for p in pairs
            }
            for name in arguments.only:
                target = Path(folder) / f"{name}-{seed}"
                variant = with_graph(config, VARIANTS[name])
                train_evaluator(pairs, "sensibleness", variant, target, seed, graphs=graphs)
                evaluator = Evaluator.from_pretrained(target)
                found = evaluator.predict(test, graphs=checked["test"])
                row: dict[str, float | None] = {**accuracies(test, [p.score for p in found])}
                row |= {key: spearman(evaluator, part, checked[key], key) for key, part in rated.items()}
                table[name].append(row)
                shown = "  ".join(f"{k} {v:.3f}" if v is not None else f"{k} undefined" for k, v in row.items())
                print(f"seed {seed}  {name:26s} {shown}", flush=True)
    print(json.dumps(summary(table, arguments)))


def summary(table: dict[str, list[dict[str, float | None]]], arguments: argparse.Namespace) -> dict[str, object]:
    """Print mean and spread of every variant; the JSON object of the run."""
    figures: dict[str, dict[str, list[float]]] = {}
    differences: dict[str, dict[str, list[float]]] = {}
    for name, rows in table.items():
        for key in rows[0]:
            values = [v for row in rows if (v := row[key]) is not None]
            figures.setdefault(name, {})[key] = [round(f(values), 4) for f in (statistics.fmean, statistics.pstdev)]
            pairs = [(row[key], base[key]) for row, base in zip(rows, table.get(TEXT, []), strict=False)]
            by_seed = [round(a - b, 4) for a, b in pairs if a is not None and b is not None]
            differences.setdefault(name, {})[key] = by_seed
    for name, row in figures.items():
        print(f"{name:26s} " + "  ".join(f"{k} {mean:.3f} (sd {sd:.3f})" for k, (mean, sd) in row.items()))
    return {
        "name": "ablation_amr",
        "ours": figures.get("residual", {}).get("adversarial"),
        "peer": figures.get(TEXT, {}).get("adversarial"),
        "unit": "accuracy against adversarial responses: mean, standard deviation over seeds",
        "figures": figures,
        "differences": differences,
        "seeds": arguments.seeds,
        "pairs": arguments.pairs,
        "test": arguments.test,
    }


if __name__ == "__main__":
    main()
