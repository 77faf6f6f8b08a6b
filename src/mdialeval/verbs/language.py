"""The language adapters of MAD-X: one stage a language, shared by all dimensions, seeds and cells of a run.

A language is learned from the English corpus, from its translations, from further training data and from the texts
that ``train.tuning.language_model.texts`` names.  A language with too few texts has no adapter, which is said; its
examples are read through the English one.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence

from mdialeval.config.run import RunConfig
from mdialeval.errors import DataError
from mdialeval.files import write_json
from mdialeval.pipeline import Progress, complete
from mdialeval.records import RankedTranslation, turns_of
from mdialeval.store import TIMING, Run, Stage
from mdialeval.verbs.read import items_of, source_stage

log = logging.getLogger(__name__)
VERSION = 1
ADAPTER = "adapter.safetensors"  # as train.language_model writes it, which is imported only where it is needed
FEWEST = 20
"""Distinct texts below which a language gets no adapter."""


def language_stages(
    config: RunConfig, run: Run, corpus: Stage | None, ranked: Stage | None, data: Sequence[Stage], progress: Progress
) -> dict[str, Stage]:
    """Language -> finished stage with its adapter; empty where ``train.tuning.kind`` is not ``madx``.

    Raises:
        DataError: English, which the task is learned in, has too few texts.
        MissingExtraError: the adapters library is not installed.
    """
    section = config.train.tuning.language_model
    if config.train.tuning.kind != "madx":
        return {}
    named = [source_stage(s, config.translate.source, config.execution.shard_size, run) for s in section.texts]
    sets = [*([corpus] if corpus else []), *data, *named]
    texts: dict[str, dict[str, None]] = {}
    for stage in sets:
        for item in items_of(stage):
            texts.setdefault(item.language, {}).update(dict.fromkeys(turn.text for turn in turns_of(item)))
    for row in ranked.read(RankedTranslation) if ranked else ():
        if row.rank is not None:  # what a flag has dropped is no example of a language
            texts.setdefault(row.translation.language, {})[row.translation.hypothesis] = None
    inputs = {f"set {place}": stage.fingerprint for place, stage in enumerate(sets, start=1)}
    inputs |= {"ranked": ranked.fingerprint} if ranked else {}
    found = {}
    for code, lines in sorted(texts.items()):
        if len(lines) < FEWEST:
            log.warning(
                "no language adapter for %s: %d distinct texts, at least %d are needed", code, len(lines), FEWEST
            )
            continue
        settings = {**section.content("texts"), "encoder": config.train.encoder, "language": code}
        found[code] = run.stage("language", VERSION, settings, inputs)
        if not found[code].done:
            complete(found[code], functools.partial(_learn, config, found[code], code, list(lines), progress))
    if config.translate.source not in found:
        n = len(texts.get(config.translate.source, {}))
        raise DataError(
            f"madx learns its task in {config.translate.source}, and there are only {n} distinct texts in it; at least "
            f"{FEWEST} are needed: name more under train.tuning.language_model.texts"
        )
    return found


def _learn(config: RunConfig, stage: Stage, code: str, texts: list[str], progress: Progress) -> None:
    from mdialeval.train.language_model import train_language_adapter

    with progress.steps(f"language adapter {code}: {len(texts):,} texts") as advance:
        summary = train_language_adapter(texts, code, config.train, stage.folder, advance)
    noted = {"table": "language", "rows": summary.n_texts, "seconds": round(summary.seconds, 3)}
    write_json(stage.folder / TIMING, [{**noted, "rows_per_second": None}])
    stage.finish({k: v for k, v in summary._asdict().items() if k != "seconds"}, [ADAPTER])
