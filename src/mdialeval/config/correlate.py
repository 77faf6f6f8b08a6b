"""The ``correlate`` and ``report`` sections."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mdialeval.config.section import Section

Statistic = Literal["pearson", "spearman", "kendall_tau_b", "acc_eq", "acc_eq_calibrated", "auc"]


class CorrelateConfig(Section):
    """Which statistics, with what intervals."""

    statistics: list[Statistic] = Field(["pearson", "spearman", "kendall_tau_b"], min_length=1)
    resamples: int = Field(1000, ge=0, description="bootstrap resamples by dialogue group; 0 = no interval")
    confidence: float = Field(0.95, gt=0, lt=1)


class ReportConfig(Section):
    """What the report is called."""

    title: str = "mdialeval report"
