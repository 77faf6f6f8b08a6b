"""The whole configuration: one section a verb."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from mdialeval.config.ablation import AblationConfig
from mdialeval.config.benchmark import BenchmarkConfig
from mdialeval.config.corpus import Source
from mdialeval.config.correlate import CorrelateConfig, ReportConfig
from mdialeval.config.parse import ParseConfig
from mdialeval.config.rank import RankConfig
from mdialeval.config.score import ScoreConfig
from mdialeval.config.section import Section
from mdialeval.config.train import TrainConfig
from mdialeval.config.translate import TranslateConfig


class ExecutionConfig(Section):
    """Where the work is done; nothing here changes a result."""

    engine: Literal["local", "ray"] = "local"
    workers: int = Field(1, ge=1)
    shard_size: int = Field(256, ge=1, description="dialogues or examples a shard")
    max_failures: int = Field(100, ge=0, description="rows that may fail before a verb stops")


class RunConfig(Section):
    """A run from corpus to report.  Only what a verb needs has to be there."""

    run: str = Field("default", description="name of the run's folder below runs/", pattern=r"^[\w.-]+$")
    runs: Path = Field(Path("runs"), description="where runs are kept, relative to the working folder")
    seed: int = Field(13, ge=0)
    offline: bool = Field(True, description="never ask a model hub")
    corpus: Source | None = Field(None, description="English dialogues")
    translate: TranslateConfig = Field(default_factory=TranslateConfig)
    rank: RankConfig = Field(default_factory=RankConfig)
    parse: ParseConfig = Field(default_factory=ParseConfig)
    train: TrainConfig = Field(default_factory=TrainConfig)
    score: ScoreConfig = Field(default_factory=ScoreConfig)
    correlate: CorrelateConfig = Field(default_factory=CorrelateConfig)
    benchmark: BenchmarkConfig = Field(default_factory=BenchmarkConfig)
    ablation: AblationConfig = Field(default_factory=AblationConfig)
    report: ReportConfig = Field(default_factory=ReportConfig)
    execution: ExecutionConfig = Field(default_factory=ExecutionConfig)
