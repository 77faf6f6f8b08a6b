"""The cells of a benchmark: a cell is one training and its scores.

Cells share the stages that they have in common (corpus, translations, ranking, language adapters, the rated sets), and
each is a stage of its own, so that a run resumes cell by cell, in one process or in several.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mdialeval.assets import EMBEDDED, causal_name
from mdialeval.config.benchmark import WITH_LIKELIHOOD, BenchmarkConfig
from mdialeval.config.run import RunConfig
from mdialeval.config.train import ONE_ENCODER
from mdialeval.errors import ConfigError, MdialevalError
from mdialeval.pipeline import Progress
from mdialeval.signature import fingerprint
from mdialeval.store import Run, Stage
from mdialeval.verbs.language import language_stages
from mdialeval.verbs.leakage import find_leakage
from mdialeval.verbs.read import source_stage
from mdialeval.verbs.score import Scored, check_scores, score
from mdialeval.verbs.train import train, training_seconds
from mdialeval.verbs.translate_test import into_english

log = logging.getLogger(__name__)

TUNED = {"lora": "lora", "madx": "madx"}
"""Strategies that set ``train.tuning.kind``."""
WITHOUT_TRANSLATIONS = ("english", "translate-test", "madx")


@dataclass(frozen=True, slots=True)
class Cell:
    """One training: a strategy, its k (top-k only), the language it is for (translate-train only) and a seed.

    Attributes:
        likelihood: whether its evaluators also read a language model.
    """

    strategy: str
    k: float | None
    language: str | None
    seed: int
    likelihood: bool = False

    @property
    def name(self) -> str:
        """What tables call it; the same for all seeds and languages of a strategy.

        >>> Cell("top-k", 5.0, None, 13).name, Cell("english", None, None, 13, True).name
        ('top-5', 'english+likelihood')
        """
        name = self.strategy if self.k is None else f"top-{self.k:g}"
        return name + WITH_LIKELIHOOD if self.likelihood else name

    @property
    def label(self) -> str:
        """It alone, in words.

        >>> Cell("translate-train", None, "pt", 13).label
        'translate-train pt, seed 13'
        """
        return f"{self.name}{f' {self.language}' if self.language else ''}, seed {self.seed}"

    @property
    def whole(self) -> Cell:
        """The strategy: the evaluators of single languages are one together."""
        return replace(self, language=None)


@dataclass(frozen=True, slots=True)
class Failure:
    """A cell that could not be made, and why; the others went on."""

    cell: Cell
    error: MdialevalError

    @property
    def text(self) -> str:
        """One sentence."""
        return f"{self.cell.label}: {self.error}"


@dataclass(frozen=True, slots=True)
class Bench:
    """What every cell starts from.

    Attributes:
        config: the whole configuration.
        run: where stages are kept.
        corpus: the English originals.
        ranked: their ranked translations, or None.
    """

    config: RunConfig
    run: Run
    corpus: Stage
    ranked: Stage | None


def cells(section: BenchmarkConfig, languages: Sequence[str]) -> list[Cell]:
    """All cells, cheap baselines of every seed first."""
    found = []
    for seed in section.seeds:
        for name in section.strategies:
            strategy = name.removesuffix(WITH_LIKELIHOOD)
            more = strategy != name
            if strategy == "top-k":
                found += [Cell(strategy, k, None, seed, more) for k in section.k]
            elif strategy == "translate-train":
                found += [Cell(strategy, None, language, seed, more) for language in languages]
            else:
                found.append(Cell(strategy, None, None, seed, more))
    return found


def strategy_names(config: RunConfig) -> list[str]:
    """What tables call the strategies, each value of k a name of its own."""
    return list(dict.fromkeys(cell.name for cell in cells(config.benchmark, list(config.translate.routes))))


def check_strategies(config: RunConfig) -> None:
    """Refuse what no cell could do, before anything is translated.

    Raises:
        ConfigError: a strategy needs translations, a route into English or another setting that is not there.
    """
    section = config.benchmark
    needy = [s for s in section.plain if s not in WITHOUT_TRANSLATIONS]
    if needy and not config.translate.routes:
        raise ConfigError(f"benchmark.strategies: {', '.join(needy)} need translations: set translate.routes")
    if "translate-test" in section.plain and not section.into_english:
        raise ConfigError("benchmark.into_english: translate-test needs a route into English, such as {pt: firefox}")
    if config.score.fuse:
        log.warning("score.fuse is part of `run`: a benchmark makes no fused scores")
    check_scores(config.score.model_copy(update={"fuse": []}), strategy_names(config))
    tuned = [s for s in section.plain if s in TUNED]
    more = [s for s in section.strategies if s.endswith(WITH_LIKELIHOOD)]
    if tuned and config.train.graph.only:
        raise ConfigError(
            f"benchmark.strategies: {', '.join(tuned)} put weights of their own into the text encoder, which "
            "train.graph.only does not use: leave one of them out"
        )
    if not more and (
        config.train.likelihood or any(d.recipe.get("likelihood") for d in config.train.dimensions.values())
    ):
        log.warning(
            "train.likelihood: in a benchmark it is read by strategies whose names say so: write %s%s",
            section.strategies[0],
            WITH_LIKELIHOOD,
        )
    encoders = {name: config.train.of(name).encoder for name in config.train.dimensions}
    for name, encoder in encoders.items():
        if tuned and causal_name(encoder) is not None:
            raise ConfigError(
                f"benchmark.strategies: {', '.join(tuned)} put weights of their own into the text encoder, and {name} "
                f"reads no text (encoder: {encoder}): leave one of them out"
            )
        if more and causal_name(encoder) is not None:
            raise ConfigError(
                f"benchmark.strategies: {', '.join(more)}: {name} reads likelihoods already (encoder: {encoder}): "
                "leave one of them out"
            )
        if "madx" in tuned and encoder != config.train.encoder:
            raise ConfigError(f"train.dimensions.{name}.recipe: {ONE_ENCODER}")


def likelihood_models(config: RunConfig) -> list[str]:
    """The language models that evaluators read beside their encoders, in a run or in a benchmark, each once."""
    sections = [config.train]
    if any(name.endswith(WITH_LIKELIHOOD) for name in config.benchmark.strategies):
        sections.append(cell_config(config, Cell("english", None, None, config.seed, True)).train)
    models = [section.of(name).likelihood for section in sections for name in section.dimensions]
    return [model for model in dict.fromkeys(models) if model]


def prepare(bench: Bench, progress: Progress) -> None:
    """Make the stages that cells share, so that cells in several processes only read them."""
    config = bench.config
    size, language = config.execution.shard_size, config.translate.source
    for source in config.score.sets:
        source_stage(source, language, size, bench.run)
    data = [source_stage(source, language, size, bench.run) for source in config.train.data]
    find_leakage(config, bench.run, [bench.corpus, *data])
    if "madx" in config.benchmark.plain:
        madx = cell_config(config, Cell("madx", None, None, config.seed))
        language_stages(madx, bench.run, bench.corpus, bench.ranked, data, progress)


def run_cell(bench: Bench, cell: Cell, progress: Progress) -> tuple[list[Scored], float | None]:
    """Train a cell's evaluators and score every set with them; also the seconds of the training, where noted."""
    chosen = cell_config(bench.config, cell)
    evaluators = train(chosen, bench.run, bench.corpus, bench.ranked, progress)
    times = [training_seconds(stage) for stage in evaluators.values()]
    total = sum(t for t in times if t is not None) if None not in times else None
    if cell.strategy == "translate-test":
        return into_english(chosen, bench.run, evaluators, progress), total
    return score(chosen, bench.run, evaluators, progress), total


def cell_config(config: RunConfig, cell: Cell) -> RunConfig:
    """The run's configuration with the cell's languages, k, tuning, seed and language model.

    A language model is read where the strategy's name says so, and nowhere else.  Settings that freeze or free the
    encoder's own weights are left out where a strategy puts in weights to learn.
    """
    section = config.train
    languages = {
        "english": [config.translate.source],
        "translate-test": [config.translate.source],
        "translate-train": [cell.language] if cell.language else [],
    }.get(cell.strategy, [])
    k = cell.k if cell.k is not None else 100.0
    dimensions = {name: recipe.model_copy(update={"top_k": k}) for name, recipe in section.dimensions.items()}
    tuning = section.tuning.model_copy(update={"kind": TUNED.get(cell.strategy, section.tuning.kind)})
    model = (section.likelihood or EMBEDDED) if cell.likelihood else ""
    changes = {"languages": languages, "dimensions": dimensions, "tuning": tuning, "likelihood": model}
    dropped = [] if cell.likelihood else ["likelihood"]
    if cell.strategy in TUNED:
        changes |= {"trainable_layers": section.trainable_layers or None, "train_embeddings": False}
        dropped += ["trainable_layers", "train_embeddings"]
    for name, recipe in dimensions.items():
        own = {key: value for key, value in recipe.recipe.items() if key not in dropped}
        dimensions[name] = recipe.model_copy(update={"recipe": own})
    training = section.model_copy(update=changes)
    scoring = config.score.model_copy(update={"scorers": [], "average": [], "fuse": []})
    return config.model_copy(update={"seed": cell.seed, "train": training, "score": scoring})


def jobs(config: RunConfig, chosen: Sequence[Cell]) -> list[list[Cell]]:
    """Cells that can be made side by side: those that share a training stay together.

    These are english and translate-test, and a strategy with and without likelihoods.
    """
    found: dict[str, list[Cell]] = {}
    for cell in chosen:
        made = cell_config(config, replace(cell, likelihood=False))
        key = fingerprint([made.seed, made.train.content("data"), [d.top_k for d in made.train.dimensions.values()]])
        found.setdefault(key, []).append(cell)
    return list(found.values())
