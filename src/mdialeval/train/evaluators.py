"""From training pairs to an evaluator folder: ``train_evaluator``."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from accelerate import Accelerator

from mdialeval.assets import causal_name
from mdialeval.config.train import TrainConfig
from mdialeval.devices import choose_device
from mdialeval.errors import ConfigError
from mdialeval.graphs.turns import PairGraphs
from mdialeval.model.adapters import Tuning, inserted_names, load_language
from mdialeval.model.encoder import packs, weights_hash
from mdialeval.model.features import FrozenFeatures
from mdialeval.model.graph_input import GraphRow, encode_graphs
from mdialeval.model.likelihood import load_reader
from mdialeval.model.markup import Markup, encode_pairs
from mdialeval.model.network import Architecture, EvaluatorNetwork, GraphBranch
from mdialeval.model.precision import choose_dtype
from mdialeval.model.saved import Settings, save_folder
from mdialeval.records import TrainingPair
from mdialeval.signature import file_hash, fingerprint
from mdialeval.tasks.draws import draw
from mdialeval.train import siamese
from mdialeval.train.card import model_card
from mdialeval.train.loop import Loop
from mdialeval.train.passes import Data
from mdialeval.train.plan import Split, chosen_split
from mdialeval.train.siamese import find_twins

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TrainSummary:
    """What a training yielded.

    Attributes:
        dev: figures of the best check (see ``dev.DevFigures``), with its step.
        history: figures of all checks.
        n_truncated: training pairs that had to be cut inside a turn.
        n_turns_dropped: context turns that did not fit, over all training pairs.
        graphs: pairs with and without a graph, turns dropped from graphs, graphs cut; empty without a graph branch.
        n_paraphrases: training pairs with a paraphrase, in siamese training.
        seconds, pairs_per_second: of the loop; not part of the result.
        warnings: what a reader of the scores should know.
    """

    folder: Path
    dimension: str
    n_train: int
    n_dev: int
    steps: int
    dev: dict[str, Any]
    history: tuple[dict[str, Any], ...]
    n_truncated: int
    n_turns_dropped: int
    graphs: dict[str, int]
    n_paraphrases: int
    seconds: float
    pairs_per_second: float
    warnings: tuple[str, ...]


class Ready(NamedTuple):
    """What a training starts from; ``config`` with the learning rate that the way of tuning has."""

    accelerator: Accelerator
    network: EvaluatorNetwork
    tokenizer: Any
    config: TrainConfig
    architecture: Architecture
    markup: Markup
    base_hash: str
    train: Data
    dev: Data


def train_evaluator(
    pairs: Sequence[TrainingPair],
    dimension: str,
    config: TrainConfig,
    folder: Path,
    seed: int,
    *,
    data_note: str = "",
    licence: str = "",
    on_step: Callable[[int], None] | None = None,
    graphs: Mapping[tuple[str, str], PairGraphs] | None = None,
    features: FrozenFeatures | None = None,
    languages: Mapping[str, Path] | None = None,
    home: str = "en",
) -> TrainSummary:
    """Train one evaluator and write its folder; an unfinished training in the folder is continued.

    Under ``accelerate launch`` every process calls this with the same arguments.

    Args:
        pairs: what it learns from; a part is held out by dialogue group, across languages.
        dimension: what it will measure.
        config: the recipe.
        folder: where the evaluator goes.
        seed: of split, order, dropout and head.
        data_note: where the pairs come from, for the model card.
        licence: of the data, for the model card.
        on_step: called after every step with the number of steps done.
        graphs: (pair id, language) -> the graphs of its turns, where ``config.graph.use`` asks for them; a pair that is
            not there trains without graphs.
        features: what a frozen encoder made of these texts before, and makes now; only where nothing in it learns.
        languages: language -> file of its adapter, where ``config.tuning.kind`` is ``madx``; ``home`` among them.
        home: the language that the pairs of ``madx`` are in.

    Raises:
        ConfigError: ``config.graph.use`` asks for graphs and none are given.
        DataError: one class only, labels outside [0, 1], doubled ids, too few dialogue groups.
        BackendError: the encoder cannot be loaded, the loss is not finite, or the predictions collapsed.
        ResumeError: the folder holds an unfinished training with another recipe.
    """
    split = chosen_split(pairs, config.max_pairs, config.dev_share, seed)
    ready = set_up(split, config, seed, graphs, languages, home)
    accelerator, network, tokenizer, tuned, architecture, markup, base_hash, train, dev = ready
    recipe = _recipe(config, architecture, base_hash, split, seed, [train.graphs, dev.graphs])
    recipe["languages"] = {code: file_hash(path) for code, path in (languages or {}).items()}
    if config.siamese.use != "none":
        twins = find_twins(split.train, config.siamese, home)
        recipe["twins"] = fingerprint(siamese.content(twins))
        coded = iter(encode_pairs(tokenizer, [twin for twin in twins if twin], markup))
        train.pair_up([next(coded) if twin else None for twin in twins])
    if features is not None and network.reads_text:
        network.to(accelerator.device)
        train.pooled, dev.pooled = (features.of(network, tokenizer, d.rows, base_hash) for d in (train, dev))

    loop = Loop(accelerator, network, tokenizer, tuned, seed, folder, recipe)
    started = time.monotonic()
    progress = loop.run(train, dev, on_step)
    seconds = time.monotonic() - started
    summary = TrainSummary(
        folder,
        dimension,
        len(split.train),
        len(split.dev),
        progress.step,
        progress.history[progress.best or 0],
        tuple(progress.history),
        sum(row.truncated for row in train.rows),
        sum(row.n_turns_dropped for row in train.rows),
        graph_counts(train.graphs),
        len(train.twin_of),
        seconds,
        loop.speed,
        tuple(_warnings(progress.history[progress.best or 0])),
    )
    if accelerator.is_main_process:
        training = _training_notes(summary, split, tuned, seed, data_note, licence)
        settings = Settings(dimension, config.encoder, base_hash, architecture, markup, training)
        save_folder(folder, network, tokenizer, settings, loop.trained | inserted_names(network), model_card(settings))
        loop.clear()
    accelerator.wait_for_everyone()
    for warning in summary.warnings:
        log.warning("%s: %s", dimension, warning)
    return summary


def set_up(
    split: Split,
    config: TrainConfig,
    seed: int,
    graphs: Mapping[tuple[str, str], PairGraphs] | None = None,
    languages: Mapping[str, Path] | None = None,
    home: str = "en",
) -> Ready:
    """The untrained network of a recipe and its encoded pairs; arguments and errors as in ``train_evaluator``."""
    device = choose_device(config.device)
    base, tokenizer = load_reader(config.encoder, config.encoder_dropout)
    base_hash = weights_hash(base)
    has_context = any(p.context for p in split.train)
    architecture = choose_architecture(config, base, has_context, tuple(languages or ()), home)
    markup = Markup(config.max_tokens, config.max_turns, config.speakers)
    train, dev = (encode_data(part, tokenizer, markup, config, graphs) for part in split)
    torch.manual_seed(draw(seed, "head").getrandbits(62))
    network = EvaluatorNetwork(base, architecture)
    if architecture.tuning is None:
        network.encoder.freeze(0 if config.graph.only else config.trainable_layers, config.train_embeddings)
    else:
        config = config.model_copy(update={"learning_rate": config.tuning.learning_rate})
        for code, path in (languages or {}).items():
            load_language(base, code, path)
    if config.gradient_checkpointing:
        network.encoder.checkpoint_gradients()
    dtype = choose_dtype(config.precision, device, base.config.model_type)
    mixed = {torch.float32: "no", torch.bfloat16: "bf16", torch.float16: "fp16"}[dtype]
    accelerator = Accelerator(cpu=device.type == "cpu", mixed_precision=mixed)
    return Ready(accelerator, network, tokenizer, config, architecture, markup, base_hash, train, dev)


def choose_architecture(
    config: TrainConfig, base: Any, has_context: bool, languages: tuple[str, ...] = (), home: str = "en"
) -> Architecture:
    """The architecture of a recipe, its ``auto`` settings decided by the encoder and the data.

    Raises:
        ConfigError: graphs or tuning beside an encoder that reads likelihoods, or madx without its home language.
    """
    if causal_name(config.encoder) is not None:
        if config.graph.use != "none" or config.tuning.kind != "full":
            raise ConfigError(f"encoder: {config.encoder} reads no words for graphs or tuning")
        return Architecture(
            "shared",
            "parts" if has_context else "response",
            hidden=config.hidden,
            dropout=config.dropout,
            loss=config.loss,
            reads="likelihood",
        )
    attention = config.attention
    if attention == "auto":
        attention = "shared" if packs(base) else "joint"
    pooling = config.pooling
    if pooling == "auto":
        pooling = "parts" if has_context else "response"
    branch, graph = None, config.graph
    if graph.use != "none":
        branch = GraphBranch(
            graph.use, graph.width, graph.layers, graph.heads, graph.fusion, graph.gate, graph.dropout, graph.only
        )
    head = (config.layers, config.hidden, config.dropout, config.loss)
    return Architecture(attention, pooling, *head, branch, _tuning(config, languages, home))


def _tuning(config: TrainConfig, languages: tuple[str, ...], home: str) -> Tuning | None:
    """What is inserted into the encoder; see ``model.adapters``."""
    section = config.tuning
    if section.kind == "full":
        return None
    if section.kind == "madx" and home not in languages:
        raise ConfigError(f"train.tuning.kind: madx needs a language adapter of {home!r}, which its task is learned on")
    return Tuning(
        section.kind,
        section.rank,
        section.alpha,
        section.dropout,
        tuple(section.targets),
        config.trainable_layers,
        section.reduction,
        section.language_model.reduction,
        languages if section.kind == "madx" else (),
        home,
    )


def encode_data(
    pairs: Sequence[TrainingPair],
    tokenizer: Any,
    markup: Markup,
    config: TrainConfig,
    graphs: Mapping[tuple[str, str], PairGraphs] | None,
) -> Data:
    """Pairs as the network takes them; arguments and errors as in ``train_evaluator``."""
    rows, drawn = encode_pairs(tokenizer, pairs, markup), None
    if config.graph.use != "none":
        if graphs is None:
            raise ConfigError(f"train.graph.use is {config.graph.use!r}, and no graphs were given: parse the pairs")
        found = [graphs.get((p.id, p.language), PairGraphs((None,) * len(p.context), None)) for p in pairs]
        drawn = encode_graphs(tokenizer, found, config.graph.use)
    return Data(rows, [p.id for p in pairs], [p.label for p in pairs], config.balance, drawn)


def graph_counts(rows: Sequence[GraphRow] | None) -> dict[str, int]:
    """How many pairs have graphs, and what the limits took away; empty where there is no graph branch."""
    if rows is None:
        return {}
    return {
        "pairs": len(rows),
        "with_graph": sum(row.has_graph for row in rows),
        "turns": sum(row.n_turns for row in rows),
        "turns_with_graph": sum(row.n_graphs for row in rows),
        "turns_dropped": sum(row.n_turns_dropped for row in rows),
        "cut": sum(row.cut for row in rows),
    }


def _recipe(
    config: TrainConfig,
    architecture: Architecture,
    base_hash: str,
    split: Split,
    seed: int,
    graphs: Sequence[Sequence[GraphRow] | None],
) -> dict[str, Any]:
    """All that the trained weights depend on."""
    data = [[[p.id, p.language, p.label, *(t.text for t in (*p.context, p.response))] for p in part] for part in split]
    return {
        "config": config.content("dimensions", "data", "encoder"),
        "architecture": dataclasses.asdict(architecture),
        "encoder": base_hash,
        "pairs": fingerprint(data),
        "graphs": fingerprint([part and [list(row) for row in part] for part in graphs]),
        "seed": seed,
    }


def _warnings(best: dict[str, Any]) -> list[str]:
    found = []
    if best["loss"] >= best["mean_loss"]:
        found.append(
            f"the dev loss ({best['loss']:.4f}) is no better than always predicting the mean ({best['mean_loss']:.4f})"
        )
    if best["value"] is None:
        found.append(f"the dev {best['statistic']} is undefined: {best['reason']}")
    if best["spread"] < 0.01:
        found.append(f"the scores hardly differ (spread {best['spread']:.2g})")
    return found


def _training_notes(
    summary: TrainSummary, split: Split, config: TrainConfig, seed: int, data_note: str, licence: str
) -> dict[str, Any]:
    """What the saved settings and the model card say about the training; nothing here depends on the clock."""
    return {
        "data": data_note,
        "licence": licence,
        "n_train": summary.n_train,
        "n_dev": summary.n_dev,
        "languages": dict(sorted(Counter(p.language for p in split.train).items())),
        "kinds": dict(sorted(Counter(p.kind for p in split.train).items())),
        "n_truncated": summary.n_truncated,
        "n_turns_dropped": summary.n_turns_dropped,
        "graphs": summary.graphs,
        "n_paraphrases": summary.n_paraphrases,
        "dev": summary.dev,
        "warnings": list(summary.warnings),
        "seed": seed,
        "config": config.content("dimensions", "data"),
    }
