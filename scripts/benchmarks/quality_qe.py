"""Quality of an estimator: Pearson with human direct assessments, one number a set of translations.

Reads every MLQE-PE file below DATA/mlqe-pe that is not for training: `test*.tsv`, and `test*.src` with `.mt` and `.da`.
The peer is the cosine of the embedded encoder's sentence vectors.

    python scripts/benchmarks/quality_qe.py [--data ../shared/data] [--estimator embedded] [--rows 200]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from mdialeval.rank.evaluate import meta_evaluate
from mdialeval.rank.gold import read_gold
from mdialeval.rank.protocol import create_estimator

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def main() -> None:
    """Score every set with both estimators and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder that holds mlqe-pe/")
    parser.add_argument("--estimator", default="embedded")
    parser.add_argument("--rows", type=int, default=200, help="first rows of each set; 0 for all (some minutes)")
    options = parser.parse_args()
    folder = options.data / "mlqe-pe"
    paths = [path for ending in ("tsv", "src") for path in sorted(folder.glob(f"test*.{ending}"))]
    if not paths:
        parser.error(f"no test*.tsv or test*.src in {folder}")
    estimators = {"ours": create_estimator(options.estimator), "peer": create_estimator("cosine")}
    found: dict[str, dict[str, float | None]] = {name: {} for name in estimators}
    print(f"{'set':<28}{'n':>6}{options.estimator:>12}{'95 %':>16}{'cosine':>9}")
    for path in paths:
        gold = read_gold(path)[: options.rows or None]
        name = ".".join(path.name.split(".")[:2])
        line = []
        for side, estimator in estimators.items():
            scores = estimator.estimate([g.translation for g in gold])
            pearson = meta_evaluate(scores, [g.score for g in gold], [50], resamples=300).correlations[0]
            found[side][name] = pearson.value
            line.append(pearson)
        interval = f"{line[0].low or 0:.2f} to {line[0].high or 0:.2f}"
        print(f"{name:<28}{len(gold):>6}{line[0].value or 0:>12.3f}{interval:>16}{line[1].value or 0:>9.3f}")
    print(
        json.dumps(
            {"name": "quality_qe", **found, "unit": "Pearson", "rows": options.rows, "estimator": options.estimator}
        )
    )


if __name__ == "__main__":
    main()
