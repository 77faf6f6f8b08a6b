"""The published USim table beside ours, on the published UCCA annotations (``--data DIR`` holds ``usim/*.xml``)."""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

from mdialeval.graphs.dagf import dag_f
from mdialeval.graphs.distsim import distsim
from mdialeval.graphs.ucca_codec import Passage, read_ucca
from mdialeval.graphs.usim import usim
from mdialeval.graphs.usim_align import AlignmentMethod

Names = list[tuple[str, str]]
CEILING: Names = [(f"amittaic{n}", f"tree{n}") for n in (1297, 1298, 1300, 1301, 1197, 1198, 1200)]
SAME_A: Names = [(f"amittaic{n}", f"amittaic{n - 100}") for n in (1297, 1298, 1300, 1303, 1305)]
SAME_T: Names = [(f"tree{n}", f"tree{n - 100}") for n in (1297, 1298, 1300, 1302)]
ACROSS_AT: Names = [(f"amittaic{n}", f"tree{n - 100}") for n in (1297, 1298, 1300)]
ACROSS_TA: Names = [(f"tree{n}", f"amittaic{n - 100}") for n in (1297, 1298, 1300)]
COLUMNS = {"two annotators": CEILING, "same A": SAME_A, "same T": SAME_T, "A to T": ACROSS_AT, "T to A": ACROSS_TA}
VARIANTS: list[tuple[str, AlignmentMethod, bool, bool]] = [
    ("as coded by its authors", "published", False, True),
    ("monotone alignment", "monotone", False, True),
    ("monotone, all units", "monotone", True, True),
    ("monotone, all units, exact labels", "monotone", True, False),
]


def mean_f1(
    pairs: list[tuple[Passage, Passage]], method: AlignmentMethod, all_units: bool, equivalences: bool
) -> float:
    scores = [usim(a, b, alignment=method, all_units=all_units, equivalences=equivalences).f1 for a, b in pairs]
    return statistics.mean(score for score in scores if score is not None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    arguments = parser.parse_args()
    names = {name for column in COLUMNS.values() for pair in column for name in pair}
    passages = {name: read_ucca(arguments.data / "usim" / f"{name}.xml") for name in names}

    def pairs(*columns: Names) -> list[tuple[Passage, Passage]]:
        return [(passages[a], passages[b]) for column in columns for a, b in column]

    print(f"{'USim, mean F':36}" + "".join(f"{title:>16}" for title in COLUMNS))
    variants = {}
    for title, method, all_units, equivalences in VARIANTS:
        row = [mean_f1(pairs(column), method, all_units, equivalences) for column in COLUMNS.values()]
        variants[title] = dict(zip(COLUMNS, row, strict=True))
        print(f"{title:36}" + "".join(f"{value:16.4f}" for value in row))

    dag = dag_f(pairs(CEILING))
    across = distsim(pairs(ACROSS_AT, ACROSS_TA))
    weak, coded = dag["weak_labelled"], variants["as coded by its authors"]
    same = mean_f1(pairs(SAME_A, SAME_T), "published", False, True)
    different = mean_f1(pairs(ACROSS_AT, ACROSS_TA), "published", False, True)
    rows = [
        ("USim, two annotators of one text", 0.83, coded["two annotators"]),
        ("DAG-F precision, weakly labelled", 0.834, weak.precision),
        ("DAG-F recall, weakly labelled", 0.857, weak.recall),
        ("DAG-F, weakly labelled", 0.845, weak.f1),
        ("DAG-F, labelled", None, dag["labelled"].f1),
        ("DAG-F, unlabelled", None, dag["unlabelled"].f1),
        ("DistSim A+D, different annotators", 0.96, across["A+D"].f1),
        ("DistSim scenes, different annotators", 0.93, across["H"].f1),
        ("USim, source to correction, same annotator", 0.92, same),
        ("USim, source to correction, different annotators", 0.84, different),
    ]
    print(f"\n{'quantity':50} {'paper':>7} {'ours':>7}")
    for title, paper, value in rows:
        print(f"{title:50} {'' if paper is None else f'{paper:.3f}':>7} {value:7.4f}")
    print("The last two are not reproduced by the published program either; 'monotone, all units' comes nearest.")
    reproduced = rows[:4] + rows[6:8]
    gap = max(abs(value - paper) for _, paper, value in reproduced if paper is not None and value is not None)
    print(
        json.dumps(
            {
                "name": "quality_usim",
                "ours": coded["two annotators"],
                "peer": 0.83,
                "unit": "USim F1 of two annotators, closer to the paper is better",
                "ratio": coded["two annotators"] / 0.83,
                "equal": gap <= 0.01,
                "largest_gap": gap,
                "values": {title: value for title, _, value in rows},
                "variants": variants,
            }
        )
    )


if __name__ == "__main__":
    main()
