"""``check``: validate a configuration and list every asset that it needs and whether it is there; loads nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from mdialeval.assets import encoder_assets
from mdialeval.config.corpus import Source
from mdialeval.config.run import RunConfig
from mdialeval.rank.protocol import ESTIMATORS
from mdialeval.readers.protocol import READERS
from mdialeval.registry import Asset, assets, package_asset, resolve
from mdialeval.scorers.protocol import SCORERS
from mdialeval.tasks.protocol import TASKS
from mdialeval.translate.route import route_assets

TUNING_PACKAGES: Mapping[str, str] = {"lora": "peft", "adapter": "adapters", "madx": "adapters"}
"""What a way of tuning needs, be it ``train.tuning.kind`` or a strategy of the benchmark."""


class Need(NamedTuple):
    """An asset and the verb that needs it."""

    verb: str
    asset: Asset


def check(config: RunConfig) -> list[Need]:
    """What a configuration needs, each asset once a verb.

    Raises:
        ConfigError: a back end's name or options are wrong.
    """
    found: dict[tuple[str, str, str], Need] = {}
    for need in _needs(config):
        found.setdefault((need.verb, need.asset.kind, need.asset.name), need)
    return list(found.values())


def _needs(config: RunConfig) -> Iterator[Need]:
    if config.corpus is not None:
        yield from _source("read", config.corpus)
    section = config.translate
    for target, route in section.routes.items():
        yield from (Need("translate", a) for a in route_assets(route, section.source, target, section.options))
    if config.translate.routes:
        for part in config.rank.members():
            yield from (Need("rank", a) for a in assets("quality estimator", ESTIMATORS, part.estimator, part.options))
    if config.corpus is not None or config.train.data:
        for name, dimension in config.train.dimensions.items():
            resolve("task", TASKS, dimension.task or name)
        yield from (Need("train", a) for a in encoder_assets(config.train.encoder))
        kinds = {config.train.tuning.kind, *config.benchmark.strategies}
        yield from (Need("train", package_asset(TUNING_PACKAGES[k])) for k in sorted(kinds & TUNING_PACKAGES.keys()))
    for source in config.train.data:
        yield from _source("train", source)
    for source in config.score.sets:
        yield from _source("score", source)
    for scorer in config.score.scorers:
        yield from (Need("score", a) for a in assets("scorer", SCORERS, scorer.scorer, scorer.options))


def _source(verb: str, source: Source) -> Iterator[Need]:
    resolve("reader", READERS, source.reader)
    for path in source.path:
        there = path.exists() or source.reader == "huggingface"
        yield Need(
            verb, Asset(path.name, "file", there, str(path), "" if there else "put the file there or change the path")
        )
