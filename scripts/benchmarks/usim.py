"""USim of essay pairs: seconds a pair, against the times measured for the original program on the same files.

The original (pure-Python Munkres, package ``ucca`` 1.3.11) pins libraries that do not install beside this project, so
its times are constants: 12 to 113 s a pair on two cores, as recorded when its counts were reproduced.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

from mdialeval.graphs.ucca_codec import read_ucca
from mdialeval.graphs.usim import usim

ORIGINAL = (12.0, 113.0)  # seconds a pair, fastest and slowest
PAIRS = [(f"{who}{n}", f"{who}{n - 100}") for who in ("amittaic", "tree") for n in (1297, 1298, 1300)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    times: list[float] = []
    print(f"{'source':13} {'target':13} {'seconds':>8} {'USim':>7}")
    for source, target in PAIRS:
        rounds = []
        for _ in range(arguments.rounds):
            started = time.perf_counter()
            pair = [read_ucca(arguments.data / "usim" / f"{name}.xml") for name in (source, target)]
            score = usim(pair[0], pair[1]).f1
            rounds.append(time.perf_counter() - started)
        times.append(statistics.median(rounds))
        print(f"{source:13} {target:13} {times[-1]:8.3f} {score:7.4f}")
    slowest = max(times)
    print(f"original, as recorded: {ORIGINAL[0]:.0f} to {ORIGINAL[1]:.0f} s; reading the files is part of our times")
    print(
        json.dumps(
            {
                "name": "usim",
                "ours": slowest,
                "peer": ORIGINAL[0],
                "unit": "seconds a pair, our slowest against the recorded fastest of the original",
                "ratio": ORIGINAL[0] / slowest,
                "equal": None,
            }
        )
    )


if __name__ == "__main__":
    main()
