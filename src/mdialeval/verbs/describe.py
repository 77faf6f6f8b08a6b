"""Lines for people: what stages counted, what an evaluation found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mdialeval.graphs.faithfulness import Faithfulness
from mdialeval.rank.evaluate import QeEvaluation
from mdialeval.store import Stage
from mdialeval.verbs.faithfulness import summary

COUNTS = ("statuses", "partial", "unscored")
"""Counts by name in the summaries of stages, shown on a line of their own."""


def describe_stages(stages: Sequence[Stage], report: Path | None = None) -> list[str]:
    """What each stage counted, where it lies, and the report."""
    lines = []
    for stage in stages:
        plain = [f"{k} {v:,}" if isinstance(v, int) else f"{k} {v}" for k, v in stage.summary().items() if _is_short(v)]
        counted = [(name, counts) for name in COUNTS if (counts := stage.summary().get(name))]
        lines.append(f"{stage.verb}: {', '.join(plain)}")
        lines += [f"  {name}: " + ", ".join(f"{n:,} {what}" for what, n in row.items()) for name, row in counted]
        lines.append(f"  {stage.folder}")
    return lines + ([f"report: {report}"] if report else [])


def describe_evaluation(found: Sequence[QeEvaluation]) -> list[str]:
    """The meta-evaluation of an estimator: correlations, and the mean gold score of what each k keeps."""
    lines = []
    for language in found:
        lines.append(f"{language.language}: {language.n_scored} of {language.n} rows scored")
        for row in language.correlations:
            interval = f"[{row.low:.3f}, {row.high:.3f}]" if row.low is not None and row.high is not None else ""
            lines.append(f"  {row.statistic:<14} {_number(row.value)} {interval} {row.reason}".rstrip())
        lines.append("  kept      n   mean gold [95 % interval]     random   oracle")
        for kept in language.kept:
            interval = f"[{kept.low:.3f}, {kept.high:.3f}]"
            numbers = f"{kept.mean:.3f} {interval:<18} {kept.random:>8.3f} {kept.oracle:>8.3f}"
            lines.append(f"  {kept.k:>4g} % {kept.n:>6}   {numbers}")
    return lines


def describe_faithfulness(found: Sequence[Faithfulness]) -> list[str]:
    """Counts, the mean, and the least faithful pairs with their missing and added edges."""
    counts = summary(list(found))
    lines = [f"{counts['scored']} of {counts['rows']} pairs scored, mean F1 {_number(counts['mean_f1'])}"]
    lines += [f"  {status}: {n}" for status, n in counts["statuses"].items()]
    if counts["partial"]:
        lines.append(f"  scored on graphs that lack a part of their text: {counts['partial']}")
    for row in sorted((row for row in found if row.f1 is not None), key=lambda row: row.f1 or 0.0)[:5]:
        lines.append(f"{row.id}  P {_number(row.precision)}  R {_number(row.recall)}  F1 {_number(row.f1)}")
        lines += [f"  - {edge}" for edge in row.missing[:4]] + [f"  + {edge}" for edge in row.added[:4]]
    return lines


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def _is_short(value: Any) -> bool:
    return isinstance(value, (int, float)) or (isinstance(value, str) and len(value) < 40)
