"""``train --find-rate``: which learning rate to take, by a short sweep for every dimension; nothing is trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mdialeval.config.run import RunConfig
from mdialeval.errors import ConfigError
from mdialeval.files import replace_atomically, write_json
from mdialeval.store import Run, Stage
from mdialeval.verbs.leakage import find_leakage
from mdialeval.verbs.read import source_stage
from mdialeval.verbs.train import allowed_pairs, training_items

if TYPE_CHECKING:
    from mdialeval.train.rate_finder import RateSweep


def find_rates(config: RunConfig, run: Run, corpus: Stage | None, ranked: Stage | None) -> dict[str, RateSweep]:
    """A sweep for every configured dimension, over the pairs that ``train`` would learn from.

    Beside the finished stages of the run, ``rates-DIMENSION.json`` and ``.svg`` hold the curve.

    Raises:
        ConfigError: no data, graphs or MAD-X (whose task adapter has its own rate).
        DataError: nothing to learn from.
    """
    from mdialeval.train.rate_finder import find_rate

    section = config.train
    if section.graph.use != "none" or section.tuning.kind == "madx":
        raise ConfigError("train --find-rate reads text alone: set train.graph.use: none and another tuning.kind")
    if corpus is None and not section.data:
        raise ConfigError("train --find-rate needs training data: name a corpus or train.data")
    data = [source_stage(s, config.translate.source, config.execution.shard_size, run) for s in section.data]
    leakage = find_leakage(config, run, [*([corpus] if corpus else []), *data])
    found = {}
    for dimension, recipe in section.dimensions.items():
        k = recipe.top_k or config.rank.k[0]
        items = training_items(corpus, ranked, k, data, frozenset(section.languages))
        pairs = allowed_pairs(dimension, recipe, items, leakage, config.seed)
        found[dimension] = find_rate(pairs, section.of(dimension), config.seed)
        write_json(run.folder / f"rates-{dimension}.json", found[dimension]._asdict())
        _plot(found[dimension], dimension, run.folder / f"rates-{dimension}.svg")
    return found


def describe(sweeps: Mapping[str, RateSweep], folder: Path) -> Iterator[str]:
    """Lines for people: the curve at a dozen points, and the suggestion."""
    for dimension, sweep in sweeps.items():
        yield f"{dimension}: {len(sweep.rates)} steps"
        yield f"  {'rate':>8}  {'loss':>7}  {'mean':>7}"
        every = max(1, len(sweep.rates) // 12)
        for step in range(0, len(sweep.rates), every):
            mark = "  <- least" if sweep.best is not None and 0 <= sweep.best - step < every else ""
            yield f"  {sweep.rates[step]:8.1e}  {sweep.losses[step]:7.4f}  {sweep.means[step]:7.4f}{mark}"
        yield f"  {sweep.reason}"
        if sweep.learning_rate is not None:
            yield (
                f"  suggestion: train.learning_rate={sweep.learning_rate:.1e} "
                f"train.head_learning_rate={sweep.head_learning_rate:.1e}"
            )
        yield f"  curve: {folder / f'rates-{dimension}.svg'}"


def _plot(sweep: RateSweep, dimension: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.5), layout="constrained")
    axes.semilogx(sweep.rates, sweep.losses, ".", alpha=0.3, label="step")
    axes.semilogx(sweep.rates, sweep.means, label="running mean")
    if sweep.best is not None:
        axes.axvline(sweep.rates[sweep.best] / 10, linestyle="--", color="grey", label="suggestion")
    axes.set(xlabel="learning rate", ylabel="loss of the training pairs", title=dimension)
    axes.legend()
    replace_atomically(path, lambda stream: figure.savefig(stream, format="svg"))
    pyplot.close(figure)
