"""``check``: validate a configuration and list every asset that it needs and whether it is there; loads nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from mdialeval.assets import causal_name, encoder_assets
from mdialeval.config.corpus import Source
from mdialeval.config.run import RunConfig
from mdialeval.config.score import ScorerConfig
from mdialeval.errors import ConfigError, DataError, MissingExtraError
from mdialeval.rank.protocol import ESTIMATORS
from mdialeval.readers.protocol import READERS
from mdialeval.registry import Asset, assets, check_options, package_asset, resolve
from mdialeval.scorers.protocol import SCORERS
from mdialeval.tasks.protocol import TASKS
from mdialeval.translate.route import route_assets
from mdialeval.verbs.cells import likelihood_models, strategy_names
from mdialeval.verbs.score import check_scores, trained_names

TUNING_PACKAGES: Mapping[str, str] = {"lora": "peft", "adapter": "adapters", "madx": "adapters"}
"""What a way of tuning needs, be it ``train.tuning.kind`` or a strategy of the benchmark."""


class Need(NamedTuple):
    """An asset and the verb that needs it."""

    verb: str
    asset: Asset


def check(config: RunConfig) -> list[Need]:
    """What a configuration needs, each asset once a verb.

    Raises:
        ConfigError: names or options of back ends are wrong; every problem of every section is listed.
    """
    found: dict[tuple[str, str, str], Need] = {}
    problems: dict[str, None] = {}
    for verb, look in _needs(config):
        try:
            for asset in look():
                found.setdefault((verb, asset.kind, asset.name), Need(verb, asset))
        except ConfigError as error:
            problems |= dict.fromkeys(error.problems)
    if problems:
        raise ConfigError(list(problems))
    return list(found.values())


def refuse_early(config: RunConfig) -> None:
    """Refuse a run that would fail after hours of work: a wrong name, or a file that is not there.

    Raises:
        ConfigError: see ``check``.
        DataError: files are missing; all are named.
    """
    missing = [need.asset.where for need in check(config) if need.asset.kind == "file" and not need.asset.present]
    if missing:
        raise DataError(
            "no such file or folder; paths are relative to the YAML file or the working folder", ", ".join(missing)
        )


def _needs(config: RunConfig) -> Iterator[tuple[str, Callable[[], Iterable[Asset]]]]:
    """Verb and how to find what it needs, one back end, file or task at a time."""
    if config.corpus is not None:
        yield "read", partial(_source, config.corpus)
    section = config.translate
    for target, route in section.routes.items():
        yield "translate", partial(route_assets, route, section.source, target, section.options)
    if config.translate.routes:
        for part in config.rank.members():
            yield "rank", partial(assets, "quality estimator", ESTIMATORS, part.estimator, part.options)
    if config.corpus is not None or config.train.data:
        for name, dimension in config.train.dimensions.items():
            yield "train", partial(_task, dimension.task or name)
        for encoder in dict.fromkeys(config.train.of(name).encoder for name in config.train.dimensions):
            yield "train", partial(_encoder, encoder)
        for model in likelihood_models(config):
            yield "train", partial(_encoder, f"likelihood:{model}")
        kinds = {config.train.tuning.kind, *config.benchmark.plain}
        for kind in sorted(kinds & TUNING_PACKAGES.keys()):
            yield "train", partial(_package, TUNING_PACKAGES[kind])
    for source in config.train.data:
        yield "train", partial(_source, source)
    for source in config.score.sets:
        yield "score", partial(_source, source)
    for scorer in config.score.scorers:
        yield "score", partial(_scorer, scorer)
    yield "score", partial(_names, config)


def _encoder(name: str) -> Iterable[Asset]:
    if causal_name(name) is None:
        return encoder_assets(name)
    from mdialeval.model.likelihood import reader_assets

    return reader_assets(name)


def _task(name: str) -> Iterator[Asset]:
    resolve("task", TASKS, name)
    yield from ()


def _scorer(chosen: ScorerConfig) -> Iterator[Asset]:
    with contextlib.suppress(MissingExtraError):  # the package is listed as an asset
        check_options("scorer", chosen.name or chosen.scorer, resolve("scorer", SCORERS, chosen.scorer), chosen.options)
    yield from assets("scorer", SCORERS, chosen.scorer, chosen.options)


def _names(config: RunConfig) -> Iterator[Asset]:
    """No asset: whether names and members are right for a run; means may be a benchmark's, of strategies."""
    try:
        check_scores(config.score, trained_names(config))
    except ConfigError as of_run:
        try:
            check_scores(config.score.model_copy(update={"fuse": []}), strategy_names(config))
            check_scores(config.score.model_copy(update={"average": []}), trained_names(config))
        except ConfigError:
            raise of_run from None
    yield from ()


def _package(name: str) -> Iterator[Asset]:
    yield package_asset(name)


def _source(source: Source) -> Iterator[Asset]:
    resolve("reader", READERS, source.reader)
    for path in source.path:
        there = path.exists() or source.reader == "huggingface"
        yield Asset(path.name, "file", there, str(path), "" if there else "put the file there or change the path")
