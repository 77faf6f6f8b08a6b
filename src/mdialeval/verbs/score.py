"""``score``: every scorer on every data set; a failure is a status, never a number."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mdialeval.config.corpus import Source
from mdialeval.config.run import RunConfig
from mdialeval.config.score import AverageConfig, FuseConfig, ScoreConfig
from mdialeval.errors import ConfigError, DataError, nearest
from mdialeval.pipeline import Progress, Shard, complete, run_shards
from mdialeval.records import SCORED, Example, Prediction
from mdialeval.registry import accepted, check_options, create, resolve
from mdialeval.scorers.protocol import SCORERS
from mdialeval.signature import folder_hash
from mdialeval.store import FEATURES, Run, Stage
from mdialeval.tables import read_parquet
from mdialeval.verbs.again import ask_again
from mdialeval.verbs.graphs import parsed
from mdialeval.verbs.read import source_stage

VERSION = 1
PATHS = ("folder", "path", "graphs", "evaluator", "model")
"""Options of scorers that name files, or may: a file or folder that is there enters the fingerprint by content."""
PARSE = "parse"
"""As the option ``graphs``: those that the section ``parse`` makes of the data set's English side."""
CACHE = "llm.sqlite"
_SPENT = ("prompt_tokens", "completion_tokens", "money")
_UNSEEN = ("concurrency", "timeout", "retries", "key_env", "cache", "replies", "likelihood_cache")
"""Options of scorers that change how a number is got, never the number."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The predictions of one scorer on one data set."""

    source: Source
    examples: Stage
    name: str
    predictions: Stage


@dataclass(frozen=True, slots=True)
class ScorerSpec:
    """A scorer by name, and what its numbers depend on beyond its options.

    Attributes:
        evaluator: the earlier scorer of the run whose scores it is told, or empty.
        sets: titles of the data sets that it scores; all where empty.
    """

    name: str
    scorer: str
    options: dict[str, Any]
    inputs: dict[str, str]
    evaluator: str = ""
    sets: tuple[str, ...] = ()


def score(config: RunConfig, run: Run, evaluators: dict[str, Stage], progress: Progress) -> list[Scored]:
    """Score every data set with the trained evaluators and every configured scorer.

    Args:
        config: the sections ``score`` and ``execution``.
        run: where stages are kept.
        evaluators: dimension -> finished ``train`` stage.
        progress: where progress is shown.

    Raises:
        ConfigError: no data set, no scorer, or names that are wrong (see ``check_scores``).
        DataError: a data set holds dialogues instead of rated examples.
    """
    if not config.score.sets:
        raise ConfigError("score.sets: name at least one data set to score")
    specs = scorer_specs(config, evaluators)
    for spec in specs:
        check_options("scorer", spec.name, resolve("scorer", SCORERS, spec.scorer), spec.options)
    sources = [(source, _examples(source, config, run)) for source in config.score.sets]
    titles = [source.title for source, _ in sources]
    if len(set(titles)) < len(titles):
        raise ConfigError(f"score.sets: two data sets have one name ({', '.join(titles)}): give them different names")
    scored = []
    for source, examples in sources:
        made: dict[str, Stage] = {}
        for spec in specs:
            if spec.sets and source.title not in spec.sets:
                continue
            ready = _with_graphs(_with_evaluator(spec, made), examples, config, run, progress)
            made[spec.name] = _predictions(ready, source, examples, config, run, progress)
            scored.append(Scored(source, examples, spec.name, made[spec.name]))
    return scored


def _with_evaluator(spec: ScorerSpec, made: Mapping[str, Stage]) -> ScorerSpec:
    """The scorer with the predictions, on the same data set, of the earlier scorer that its option names."""
    if not spec.evaluator:
        return spec
    if spec.evaluator not in made:
        raise ConfigError(
            f"score.scorers: {spec.name!r} is told what {spec.evaluator!r} says, which comes after it (move it up) or "
            "does not score all of its data sets"
        )
    stage = made[spec.evaluator]
    options = {**spec.options, "evaluator": str(stage.folder)}
    return replace(spec, options=options, inputs={**spec.inputs, "evaluator": stage.content})


def _with_graphs(spec: ScorerSpec, examples: Stage, config: RunConfig, run: Run, progress: Progress) -> ScorerSpec:
    """The scorer with the graphs of a data set, where it wants graphs and was given none."""
    needs = getattr(resolve("scorer", SCORERS, spec.scorer), "needs_graphs", None)
    given = spec.options.get("graphs")
    if given not in (None, PARSE) or (given is None and (needs is None or not needs(**spec.options))):
        return spec
    graphs = parsed(config, run, examples, progress)
    options = {key: value for key, value in spec.options.items() if key != "graphs"}
    if graphs is None:
        return replace(spec, options=options)
    options["graphs"] = str(graphs.folder)
    return replace(spec, options=options, inputs={**spec.inputs, "graphs": graphs.fingerprint})


def scorer_specs(config: RunConfig, evaluators: dict[str, Stage]) -> list[ScorerSpec]:
    """The trained evaluators, then the configured scorers.

    Raises:
        ConfigError: there is none, or see ``check_scores``.
    """
    check_scores(config.score, trained_names(config))
    specs = (
        [
            ScorerSpec(
                "evaluator",
                "evaluator",
                {"folder": [str(stage.folder / "evaluator") for stage in evaluators.values()]},
                {name: stage.fingerprint for name, stage in evaluators.items()},
            )
        ]
        if evaluators
        else []
    )
    known = {*trained_names(config), *(chosen.name or chosen.scorer for chosen in config.score.scorers)}
    for chosen in config.score.scorers:
        told = str(chosen.options.get("evaluator", ""))
        no_file = {"evaluator": told in known, "graphs": chosen.options.get("graphs") == PARSE}
        no_file["model"] = not Path(str(chosen.options.get("model", ""))).expanduser().exists()  # a name on a hub
        paths = {k: v for k, v in chosen.options.items() if k in PATHS and isinstance(v, str) and not no_file.get(k)}
        inputs = {key: folder_hash(Path(value).expanduser()) for key, value in paths.items()}
        evaluator = told if told in known else ""
        specs.append(
            ScorerSpec(
                chosen.name or chosen.scorer, chosen.scorer, chosen.options, inputs, evaluator, tuple(chosen.sets)
            )
        )
    if not specs:
        raise ConfigError("score.scorers: name at least one scorer, or train evaluators; see `mdialeval list scorers`")
    return specs


def trained_names(config: RunConfig) -> list[str]:
    """What the scores of a run's evaluators are called; empty where it trains none."""
    return ["evaluator"] if config.corpus is not None or config.train.data else []


def check_scores(section: ScoreConfig, trained: Sequence[str]) -> None:
    """Before anything is trained: whether every score has a name of its own, and what is joined its members.

    Args:
        section: the scorers, means and fusions.
        trained: names of what is trained and scores beside them.

    Raises:
        ConfigError: a name is taken, or a member is not there or there twice; all problems are listed.
    """
    scorers = [*trained, *(chosen.name or chosen.scorer for chosen in section.scorers)]
    taken, problems = list(scorers), []
    if twice := _twice(scorers):
        problems.append(f"score.scorers: two scorers have one name ({', '.join(twice)}): give them different names")
    titles = [source.title for source in section.sets]
    problems += [
        f"score.scorers: {chosen.name or chosen.scorer!r}: no data set {title!r}: {nearest(title, titles)}"
        for chosen in section.scorers
        for title in chosen.sets
        if title not in titles
    ]
    sections: list[tuple[str, AverageConfig | FuseConfig]] = [("average", s) for s in section.average]
    sections += [("fuse", s) for s in section.fuse]
    for where, joined in sections:
        if joined.name in taken:
            problems.append(f"score.{where}: there is a score {joined.name!r} already: give this one another name")
        taken.append(joined.name)
        problems += [
            f"score.{where}: {joined.name!r}: {m!r} is there twice: name it once" for m in _twice(joined.members)
        ]
        for member in dict.fromkeys((*joined.members, *getattr(joined, "may_be_negative", ()))):
            if member not in scorers:
                problem = f"no scorer {member!r} to join: {nearest(member, scorers)}"
                problems.append(f"score.{where}: {joined.name!r}: {problem}")
    if problems:
        raise ConfigError(problems)


def _twice(names: Iterable[str]) -> list[str]:
    return [name for name, times in Counter(names).items() if times > 1]


def _examples(source: Source, config: RunConfig, run: Run) -> Stage:
    stage = source_stage(source, config.translate.source, config.execution.shard_size, run)
    if stage.summary()["record"] != "Example":
        raise DataError("holds dialogues without rated responses: `score` needs a response column", source.where)
    return stage


@dataclass(frozen=True, slots=True)
class _Factory:
    """Loads a scorer once a worker."""

    spec: ScorerSpec
    examples: Stage
    batch_size: int
    device: str
    cache: Path
    features: Path

    def __call__(self) -> Callable[[int], Shard]:
        return functools.partial(self._shard, self.load())

    def load(self) -> Any:
        """The scorer, with the settings that all scorers share."""
        cls = resolve("scorer", SCORERS, self.spec.scorer)
        shared = {"batch_size": self.batch_size, "device": self.device, "cache": str(self.cache)}
        shared["likelihood_cache"] = str(self.features)
        return create("scorer", SCORERS, self.spec.scorer, {**accepted(cls, shared), **self.spec.options})

    def _shard(self, scorer: Any, index: int) -> Shard:
        examples = list(read_parquet(self.examples.shard(index), Example))
        predictions = [replace(p, scorer=self.spec.name) for p in scorer.score(examples)]
        return Shard(predictions, sum(p.status == "failed" for p in predictions))


def _predictions(
    spec: ScorerSpec, source: Source, examples: Stage, config: RunConfig, run: Run, progress: Progress
) -> Stage:
    options = {k: v for k, v in spec.options.items() if k not in spec.inputs and k not in ("folder", *_UNSEEN)}
    settings = {"scorer": spec.scorer, "name": spec.name, "options": options, "seed": config.seed}
    stage = run.stage("score", VERSION, settings, {"examples": examples.fingerprint, **spec.inputs})
    cache = run.folder.parent / CACHE
    section, features = config.score, run.folder / FEATURES
    factory = _Factory(spec, examples, section.batch_size, section.device, cache, features)
    label = f"score {source.title}: {spec.name}"
    count = len(examples.shards())
    run_shards(stage, count, factory, Prediction, execution=config.execution, progress=progress, label=label)
    finish = functools.partial(_finish, stage, spec)
    complete(stage, finish)
    cls: Any = resolve("scorer", SCORERS, spec.scorer)
    if config.score.retry != "nothing" and hasattr(cls, "score_rows"):
        statuses = cls.passing | (cls.refused if config.score.retry == "unscored" else frozenset())
        ask_again(stage, examples, factory.load, statuses, finish)
    return stage


def _finish(stage: Stage, spec: ScorerSpec) -> None:
    stage.finish(_summary(stage, spec))


def _summary(stage: Stage, spec: ScorerSpec) -> dict[str, Any]:
    """Counts by status and coverage by language and dimension, and the scorer's signature."""
    graphs: dict[str, list[int]] = {}
    adapters: dict[str, Counter[str]] = {}
    spent: Counter[str] = Counter()
    for prediction in stage.read(Prediction):
        if "language_adapter" in prediction.detail:
            adapters.setdefault(prediction.language, Counter())[str(prediction.detail["language_adapter"])] += 1
        if "n_graphs" in prediction.detail:
            seen = graphs.setdefault(prediction.language, [0, 0])
            seen[0] += bool(prediction.detail["n_graphs"])
            seen[1] += 1
        spent.update({key: prediction.detail[key] for key in _SPENT if key in prediction.detail})
    scorer = create("scorer", SCORERS, spec.scorer, spec.options)
    return {
        "scorer": spec.name,
        "signature": scorer.signature,
        **_spent(spent, spec),
        **counts(stage.read(Prediction)),
        **({"graphs": {code: f"{seen} of {n}" for code, (seen, n) in sorted(graphs.items())}} if graphs else {}),
        **({"language_adapters": {code: dict(n) for code, n in sorted(adapters.items())}} if adapters else {}),
    }


def counts(predictions: Iterable[Prediction]) -> dict[str, Any]:
    """For a summary: rows, rows by status, and the share that is scored by dimension and language."""
    statuses: Counter[str] = Counter()
    cells: dict[str, list[int]] = {}
    for prediction in predictions:
        statuses[prediction.status] += 1
        cell = cells.setdefault(f"{prediction.dimension} {prediction.language}", [0, 0])
        cell[0] += prediction.status in SCORED
        cell[1] += 1
    coverage = {key: f"{scored} of {n}" for key, (scored, n) in sorted(cells.items())}
    return {"rows": statuses.total(), "statuses": dict(sorted(statuses.items())), "coverage": coverage}


def _spent(spent: Counter[str], spec: ScorerSpec) -> dict[str, Any]:
    """What the replies behind the rows took, whether they were asked for now or came out of the cache."""
    shown: dict[str, Any] = {key: int(spent[key]) for key in _SPENT[:2] if key in spent}
    if "money" in spent:
        shown["money"] = f"{spent['money']:.4f} {spec.options['prices'].get('currency', 'USD')}"
    return shown


def estimates(config: RunConfig, run: Run) -> list[str]:
    """What the scorers that ask a language model would ask, and its price; nothing is asked."""
    lines = []
    for spec in (spec for spec in scorer_specs(config, {}) if spec.scorer == "llm"):
        made = {"evaluator"} if spec.evaluator else set()  # before scoring there are no blocks of this run's own
        made |= {"graphs"} if spec.options.get("graphs") == PARSE else set()
        given = {key: value for key, value in spec.options.items() if key not in made}
        options = {"cache": str(run.folder.parent / CACHE), **given}
        without = f" (without the blocks that this run makes: {', '.join(sorted(made))})" if made else ""
        scorer = create("scorer", SCORERS, spec.scorer, options)
        for source in (s for s in config.score.sets if not spec.sets or s.title in spec.sets):
            examples = list(_examples(source, config, run).read(Example))
            lines.append(f"{spec.name} on {source.title}: {scorer.estimate(examples)}{without}")
    return lines or ["no scorer asks a language model"]


def predictions_of(scored: Sequence[Scored], title: str) -> Iterator[Prediction]:
    """All predictions on one data set."""
    for entry in scored:
        if entry.source.title == title:
            yield from entry.predictions.read(Prediction)
