"""``train``: one evaluator a dimension, from the English corpus, its best translations and further labelled data."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from mdialeval.assets import causal_name
from mdialeval.config.run import RunConfig
from mdialeval.config.train import DimensionConfig, TrainConfig
from mdialeval.errors import ConfigError
from mdialeval.files import write_json
from mdialeval.graphs.turns import PairGraphs
from mdialeval.pipeline import Progress, complete, world_size
from mdialeval.rank.select import cut
from mdialeval.readers.catalogue import licence_of
from mdialeval.records import Dialogue, Example, RankedTranslation, TrainingPair, Translation, turn_id
from mdialeval.registry import create
from mdialeval.signature import file_hash, fingerprint
from mdialeval.store import FEATURES, TIMING, Run, Stage
from mdialeval.tasks.protocol import TASKS
from mdialeval.translate.turns import rebuild
from mdialeval.verbs.graphs import TrainingGraphs, parsed
from mdialeval.verbs.language import ADAPTER, language_stages
from mdialeval.verbs.leakage import Leakage, find_leakage
from mdialeval.verbs.rank import funnels_of
from mdialeval.verbs.read import items_of, source_stage

VERSION = 2
EVALUATOR = "evaluator"

Item = Dialogue | Example


def train(
    config: RunConfig, run: Run, corpus: Stage | None, ranked: Stage | None, progress: Progress
) -> dict[str, Stage]:
    """Train every configured dimension; dimension -> finished stage, whose ``evaluator`` folder holds the model.

    Raises:
        ConfigError: an unknown task.
        DataError: nothing to learn from (no pairs, one class only, one dialogue group).
        BackendError: the encoder cannot be loaded, or the loss is not finite.
    """
    section = config.train
    data = {s.title: source_stage(s, config.translate.source, config.execution.shard_size, run) for s in section.data}
    inputs = {f"data {title}": stage.fingerprint for title, stage in data.items()}
    inputs |= {name: stage.fingerprint for name, stage in (("corpus", corpus), ("ranked", ranked)) if stage}
    leakage = find_leakage(config, run, [*([corpus] if corpus else []), *data.values()])
    with_graphs = [*([corpus] if corpus else []), *data.values()] if section.graph.use != "none" else []
    sets = [(stage, parsed(config, run, stage, progress)) for stage in with_graphs]
    inputs |= {f"graphs {place}": graphs.fingerprint for place, (_, graphs) in enumerate(sets, start=1) if graphs}
    adapters = language_stages(config, run, corpus, ranked, list(data.values()), progress)
    inputs |= {f"language {code}": stage.fingerprint for code, stage in adapters.items()}
    if (paraphrases := section.siamese.path) is not None and paraphrases.exists():
        inputs["paraphrases"] = file_hash(paraphrases)
    chosen = _languages(config)
    stages = {}
    for dimension, recipe in section.dimensions.items():
        model, k = section.of(dimension).likelihood, recipe.top_k or config.rank.k[0]
        settings = _without_likelihood(section, dimension).content("dimensions", "data")
        settings |= {**recipe.content("recipe"), "dimension": dimension, "top_k": k, "seed": config.seed}
        settings["left_out"] = fingerprint(sorted(leakage.drop)) if leakage.drop else ""
        stage = stages[dimension] = run.stage("train", VERSION, settings, inputs)
        if model:  # a stage more, so that what reads no language model is trained once for both
            told = {**inputs, "evaluator": stage.fingerprint, "likelihood": _identity(model)}
            stages[dimension] = run.stage("train", VERSION, {**settings, "likelihood": model}, told)
        if stages[dimension].done:
            continue
        items = training_items(corpus, ranked, k, [*data.values()], chosen)
        pairs = allowed_pairs(dimension, recipe, items, leakage, config.seed)
        graphs = TrainingGraphs(config, run, sets, ranked).of_pairs(pairs) if sets else None
        if not stage.done:
            note = ", ".join([*data, *(["corpus"] if corpus else [])])
            _train_one(config, stage, dimension, pairs, (note, _licence(config)), leakage, progress, graphs, adapters)
        if model:
            _weigh_one(config, stage, stages[dimension], dimension, pairs, progress, graphs)
    return stages


def _licence(config: RunConfig) -> str:
    """The licences of the training data, as far as their publishers state them."""
    named = [(s.title, s.reader) for s in config.train.data]
    named += [("corpus", config.corpus.reader)] if config.corpus is not None else []
    return ", ".join(f"{title}: {licence_of(reader) or 'not stated'}" for title, reader in named)


def _languages(config: RunConfig) -> frozenset[str]:
    """The languages that are trained on; none = all.

    Raises:
        ConfigError: MAD-X, which learns its task in one language, is to learn it in others.
    """
    home, wanted = config.translate.source, frozenset(config.train.languages)
    if config.train.tuning.kind == "madx" and wanted - {home}:
        raise ConfigError(
            f"train.languages: madx learns its task from {home} alone and reads other languages through their "
            "adapters; leave the key out"
        )
    return frozenset({home}) if config.train.tuning.kind == "madx" else wanted


def allowed_pairs(
    dimension: str, recipe: DimensionConfig, items: Iterator[Item], leakage: Leakage, seed: int
) -> list[TrainingPair]:
    """A dimension's training pairs, without the items that leakage leaves out.

    Raises:
        ConfigError: an unknown task.
    """
    allowed = (item for item in items if not leakage.drop & {item.id, item.source_id, _group(item)})
    return list(_task(dimension, recipe, allowed, seed))


def training_items(
    corpus: Stage | None, ranked: Stage | None, k: float, data: list[Stage], languages: frozenset[str]
) -> Iterator[Item]:
    """What a task makes pairs from: English in full, every language's best k per cent, and further data as it is.

    A kept turn of a translated dialogue becomes an example without rating: the turn as response to the turns before it.

    Args:
        corpus: the English originals.
        ranked: their ranked translations.
        k: per cent kept in each language.
        data: finished ``read`` stages.
        languages: only these; all where empty.
    """
    for stage in [*([corpus] if corpus else []), *data]:
        for item in items_of(stage):
            if not languages or item.language in languages:
                yield item
    if corpus is None or ranked is None:
        return
    limits = {f.language: cut(f.n_ranked, k) for f in funnels_of(ranked)}
    shards = corpus.shards()
    for place, code in enumerate(dict.fromkeys(f.language for f in funnels_of(ranked))):
        if languages and code not in languages:
            continue
        for index in range(len(shards)):
            yield from _translated(corpus, ranked, index, place * len(shards) + index, limits[code])


def _translated(corpus: Stage, ranked: Stage, index: int, shard: int, limit: int) -> Iterator[Item]:
    from mdialeval.tables import read_parquet
    from mdialeval.verbs.read import shard_items

    by_item: dict[str, list[Translation]] = {}
    kept: set[str] = set()
    for row in read_parquet(ranked.shard(shard), RankedTranslation):
        by_item.setdefault(row.translation.item_id, []).append(row.translation)
        if row.rank is not None and row.score is not None and row.rank <= limit:
            kept.add(row.translation.id)
    for original in shard_items(corpus, index):
        item = rebuild(original, by_item.get(original.id, []))
        if isinstance(item, Dialogue):
            for turn, response in enumerate(item.turns):
                name = turn_id(item.id, turn)
                if name in kept:
                    yield Example(name, item.language, item.turns[:turn], response, group=original.id, source_id=name)
        elif item is not None and turn_id(item.id, len(item.context)) in kept:
            yield item


def _task(dimension: str, recipe: DimensionConfig, items: Iterator[Item], seed: int) -> Iterator[TrainingPair]:
    name = recipe.task or dimension
    try:
        task = create("task", TASKS, name, recipe.options)
    except ConfigError as error:
        raise ConfigError(f"train.dimensions.{dimension}: {error}") from None
    yield from task.pairs(items, seed)


def training_seconds(stage: Stage) -> float | None:
    """How long a training took on the machine that did it; None where that was not noted."""
    path = stage.folder / TIMING
    return float(json.loads(path.read_text(encoding="utf-8"))[0]["seconds"]) if path.exists() else None


def _without_likelihood(section: TrainConfig, dimension: str) -> TrainConfig:
    """A dimension's settings for the evaluator that reads no language model."""
    return section.of(dimension).model_copy(update={"likelihood": ""})


def _identity(model: str) -> str:
    from mdialeval.llm.causal import identity

    return identity(model)


def _group(item: Item) -> str:
    return item.group if isinstance(item, Example) else item.id


def _train_one(
    config: RunConfig,
    stage: Stage,
    dimension: str,
    pairs: list[TrainingPair],
    note: tuple[str, str],
    leakage: Leakage,
    progress: Progress,
    graphs: dict[tuple[str, str], PairGraphs] | None,
    adapters: dict[str, Stage],
) -> None:
    from mdialeval.model.features import FrozenFeatures
    from mdialeval.train.evaluators import train_evaluator

    if world_size() > 1 and "MASTER_ADDR" not in os.environ:
        raise ConfigError(
            "RANK and WORLD_SIZE are set, but MASTER_ADDR is not, and ranks that train must meet: use "
            "`accelerate launch -m mdialeval train ...` (or torchrun)"
        )
    folder: Path = stage.folder / EVALUATOR
    section = _without_likelihood(config.train, dimension)
    features = None
    if causal_name(section.encoder) is not None:  # slow, and the same for all seeds and strategies
        features = FrozenFeatures(stage.folder.parent / FEATURES)
    with progress.steps(f"train {dimension}: {len(pairs):,} pairs") as advance:
        summary = train_evaluator(
            pairs,
            dimension,
            section,
            folder,
            config.seed,
            data_note=note[0],
            licence=note[1],
            graphs=graphs,
            features=features,
            on_step=advance,
            languages={code: stage.folder / ADAPTER for code, stage in adapters.items()},
            home=config.translate.source,
        )

    def finish() -> None:
        speed = round(summary.pairs_per_second, 1)
        noted = {"table": "train", "rows": len(pairs), "seconds": round(summary.seconds, 3), "rows_per_second": speed}
        write_json(stage.folder / TIMING, [noted])
        files = sorted(p.relative_to(stage.folder).as_posix() for p in folder.rglob("*") if p.is_file())
        stage.finish(
            {
                "dimension": dimension,
                "pairs": len(pairs),
                "train_pairs": summary.n_train,
                "dev_pairs": summary.n_dev,
                "steps": summary.steps,
                "dev": dict(summary.dev),
                "history": [dict(figures) for figures in summary.history],
                "truncated": summary.n_truncated,
                "turns_dropped": summary.n_turns_dropped,
                "graphs": summary.graphs,
                **({"paraphrases": summary.n_paraphrases} if summary.n_paraphrases else {}),
                **({"language_adapters": sorted(adapters)} if adapters else {}),
                "leakage": list(leakage.text),
                "warnings": list(summary.warnings),
            },
            files,
        )

    complete(stage, finish)


def _weigh_one(
    config: RunConfig,
    trained: Stage,
    stage: Stage,
    dimension: str,
    pairs: list[TrainingPair],
    progress: Progress,
    graphs: dict[tuple[str, str], PairGraphs] | None,
) -> None:
    """The evaluator of a finished stage, a language model beside it."""
    from mdialeval.model.features import FrozenFeatures
    from mdialeval.train.stack import stack_evaluator

    folder, section = stage.folder / EVALUATOR, config.train.of(dimension)

    def finish() -> None:
        started = time.monotonic()
        features = FrozenFeatures(stage.folder.parent / FEATURES)
        with progress.steps(f"read likelihoods for {dimension}") as advance:
            source = trained.folder / EVALUATOR
            weighed = stack_evaluator(
                source, folder, pairs, section, config.seed, graphs=graphs, features=features, on_rows=advance
            )
        seconds = time.monotonic() - started
        before = training_seconds(trained)
        if before is not None:
            whole, speed = round(before + seconds, 3), round(weighed.pairs / seconds, 1)
            noted = {"table": "train", "rows": weighed.pairs, "seconds": whole, "rows_per_second": speed}
            write_json(stage.folder / TIMING, [noted])
        files = sorted(p.relative_to(stage.folder).as_posix() for p in folder.rglob("*") if p.is_file())
        summary = trained.summary()
        warnings = [*summary["warnings"], *weighed.warnings]
        stage.finish({**summary, "warnings": warnings, "likelihood": weighed._asdict()}, files)

    complete(stage, finish)
