"""Quality of the evaluators that are trained on DailyDialog++ dev, against people's ratings and constructed labels.

Trains one evaluator of sensibleness and one of understandability with the default recipe (or ``--set``), and another
of understandability that reads likelihoods, scores rated sets that nothing was tuned or trained on, and prints
Spearman's rho a set and language beside the baselines.

    python scripts/benchmarks/quality_dialogue.py [--data ../shared/data] [--set epochs=2] [--likelihood fluency]

Sets: xDial-Eval dailydialog-zhao, dailydialog-grade and persona-usr (overall rating, six languages), DailyDialog++ test
(accuracy against random and adversarial negatives), holistic (fluency, coherence), MAIA (AUC of `understanding` and
`sensibleness`, about 98 % positive, with its interval).  On the sets of ``--likelihood`` the embedded
causal language model and its mean with the evaluator are scored, too (0.15 s a row).  The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from mdialeval.agreement.agree import correlate
from mdialeval.agreement.combine import average
from mdialeval.config.load import parse
from mdialeval.config.train import TrainConfig
from mdialeval.readers.dailydialogpp import DailyDialogPlusPlus
from mdialeval.readers.holistic import Holistic
from mdialeval.readers.maia import Maia
from mdialeval.readers.xdial import XDial
from mdialeval.records import Agreement, Dialogue, Example, Prediction
from mdialeval.registry import create
from mdialeval.scorers.protocol import SCORERS, Scorer
from mdialeval.tasks.protocol import TASKS
from mdialeval.train.evaluators import train_evaluator

SIX_MINUTES = {"checks": 2, "max_pairs": 12_000}  # what two cores train in that time
LANGUAGES = ("en", "zh", "es", "de", "fr", "ja")
XDIAL = ("dailydialog-zhao", "dailydialog-grade", "persona-usr")


class Recipe(NamedTuple):
    """An evaluator's dimension, the options of its task, and its own settings of ``train``."""

    dimension: str
    options: Mapping[str, object]
    settings: Mapping[str, object]


# People rate what generators say, not shuffled words: run on with parts of other texts, and slight damage, too.
GENERATED = {"spliced": 0.5, "vary": True}
RECIPES = {
    "evaluator": Recipe("sensibleness", {}, {}),
    "text": Recipe("understandability", GENERATED, {}),
    "likelihoods": Recipe("understandability", GENERATED, {"encoder": "likelihood", "max_pairs": 3000}),
}


def train(data: Path, name: str, config: TrainConfig, folder: Path, seed: int) -> float:
    """Train one evaluator on DailyDialog++ dev; the seconds it took."""
    dimension, options, settings = RECIPES[name]
    items = DailyDialogPlusPlus().read([data / "dailydialogpp" / "dev.json"])
    pairs = list(create("task", TASKS, dimension, options).pairs(items, seed))
    own = TrainConfig.model_validate({**config.model_dump(), **settings})
    started = time.monotonic()
    summary = train_evaluator(pairs, dimension, own, folder, seed, data_note="DailyDialog++ dev")
    seconds = time.monotonic() - started
    print(f"{name}: {dimension}, {summary.n_train} pairs, {seconds:.0f} s, dev {summary.dev}", flush=True)
    return seconds


def rated_sets(data: Path) -> Iterable[tuple[str, list[Example], str, list[str]]]:
    """Name, examples, statistic and the evaluators to try, of every rated set that is there."""
    for name in XDIAL:
        if (path := data / "xdial" / f"{name}.csv").exists():
            yield name, list(XDial(languages=LANGUAGES).read([path])), "spearman", ["evaluator"]
    for path in sorted((data / "holistic").glob("*.csv")):
        name = path.name.partition("_")[0]
        names = ["text", "likelihoods"] if name == "fluency" else ["evaluator"]
        yield name, list(Holistic().read([path])), "spearman", names
    for path in sorted((data / "maia").glob("*.csv")):
        examples = list(Maia(dimensions=["understanding", "sensibleness"]).read([path]))
        yield f"maia-{path.name[:2]}", examples, "auc", list(RECIPES)


def accuracies(examples: Sequence[Dialogue | Example], predictions: Sequence[Prediction]) -> dict[str, float]:
    """Accuracy at .5 on positives and one kind of negatives, both kinds counting alike."""
    right: dict[str, list[bool]] = {}
    for example, prediction in zip(examples, predictions, strict=True):
        if isinstance(example, Example) and prediction.score is not None:
            positive = example.system == "positive"
            right.setdefault(example.system, []).append((prediction.score > 0.5) == positive)
    share = {kind: sum(hits) / len(hits) for kind, hits in right.items()}
    return {kind: (share["positive"] + share[kind]) / 2 for kind in ("random", "adversarial")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of train")
    parser.add_argument("--resamples", type=int, default=500)
    parser.add_argument(
        "--likelihood", nargs="*", default=["fluency", "context"], metavar="SET", help="sets scored by it, too"
    )
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--folder", type=Path, help="keep the evaluators here, and reuse those that are there")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    config = parse({"train": SIX_MINUTES}, [f"train.{s}" for s in arguments.set]).train
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="mdialeval-quality-"))
    seconds = {}
    for name in RECIPES:
        place = folder / name
        if not (place / "evaluator.json").exists():
            seconds[name] = train(arguments.data, name, config, place, arguments.seed)
    try:
        report(arguments.data, folder, seconds, arguments.resamples, arguments.likelihood)
    finally:
        if arguments.folder is None:
            shutil.rmtree(folder)


def report(data: Path, folder: Path, seconds: dict[str, float], resamples: int, likelihood: Sequence[str]) -> None:
    """Score everything, print the table, then the JSON line."""
    evaluators: dict[str, Scorer] = {
        name: create("scorer", SCORERS, "evaluator", {"folder": str(folder / name)}) for name in RECIPES
    }
    baselines: list[Scorer] = [create("scorer", SCORERS, "cosine"), create("scorer", SCORERS, "length")]
    figures: dict[str, dict[str, float | None]] = {}
    for name, examples, statistic, chosen in rated_sets(data):
        learned = {n: [replace(p, scorer=n) for p in evaluators[n].score(examples)] for n in chosen}
        predictions = [p for rows in learned.values() for p in rows]
        predictions += [p for scorer in baselines for p in scorer.score(examples)]
        if name in likelihood:
            dimensions = list(dict.fromkeys(RECIPES[n].dimension for n in chosen))
            more = create("scorer", SCORERS, "likelihood", {"dimensions": dimensions}).score(examples)
            predictions += more
            for n, rows in learned.items():
                predictions += average([*rows, *more], examples, f"{n}+likelihood")
        rows = correlate(predictions, examples, dataset=name, statistics=[statistic], resamples=resamples)
        figures |= table(name, statistic, [row for row in rows if row.statistic == statistic])
    test = list(DailyDialogPlusPlus().read([data / "dailydialogpp" / "test.json"]))
    sensibleness = evaluators["evaluator"].score(test)  # type: ignore[arg-type]
    accuracy = accuracies(test, sensibleness)
    print(f"dailydialogpp test accuracy: {accuracy}")
    zhao = figures.get("dailydialog-zhao overall evaluator:sensibleness", {})
    values = [zhao[code] for code in LANGUAGES if zhao.get(code) is not None]
    summary = {
        "name": "quality_dialogue",
        "ours": round(statistics.fmean(v for v in values if v is not None), 4) if values else None,
        "unit": "mean spearman, dailydialog-zhao",
        "train_seconds": {k: round(v) for k, v in seconds.items()},
        "accuracy": {k: round(v, 4) for k, v in accuracy.items()},
        "figures": figures,
        "signature": {d: e.signature for d, e in evaluators.items()},
    }
    print(json.dumps(summary, ensure_ascii=False))


def table(name: str, statistic: str, rows: Sequence[Agreement]) -> dict[str, dict[str, float | None]]:
    """Print the rows of one set; figures by set, rating and scorer, then language."""
    figures: dict[str, dict[str, float | None]] = {}
    for row in rows:
        wanted = {"overall", "coherence", "sensibleness"} if row.scorer_dimension != "understandability" else None
        if wanted is not None and row.scorer != "length" and row.dimension not in wanted:
            continue
        key = f"{name} {row.dimension} {row.scorer}:{row.scorer_dimension}"
        figures.setdefault(key, {})[row.language] = None if row.value is None else round(row.value, 4)
        shown = row.reason if row.value is None else f"{row.value:.3f} [{row.low}, {row.high}]"
        if row.low is not None and row.high is not None and row.value is not None:
            shown = f"{row.value:.3f} [{row.low:.3f}, {row.high:.3f}]"
        print(f"{key:70s} {row.language or 'mean':6s} {statistic} {shown} (n {row.n_scored} of {row.n})", flush=True)
    return figures


if __name__ == "__main__":
    main()
