"""From a completion to a score with a status; from repeated ones to their mean and spread."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

from mdialeval.llm.protocol import Completion
from mdialeval.llm.reply import parse_reply
from mdialeval.llm.tokens import expectation
from mdialeval.records import PredictionStatus

Mode = Literal["number", "expectation", "samples"]


class Judgement(NamedTuple):
    """One score of the judge, or why there is none.

    Attributes:
        score: on the declared scale; None exactly where ``status`` is not ``ok``.
        reason: a sentence for people, where there is no score.
        coverage: share of the probability on score tokens, in expectation mode.
    """

    score: float | None
    status: PredictionStatus
    reason: str = ""
    coverage: float | None = None


class Repeated(NamedTuple):
    """Several judgements of one thing.

    Attributes:
        judgement: the mean score with ``ok``, or the most frequent reason where none has a score.
        scores: one a repetition, None where it has no score.
        spread: population standard deviation of the scores that are there; None below two.
    """

    judgement: Judgement
    scores: tuple[float | None, ...]
    spread: float | None


def judge(completion: Completion, mode: Mode, scale: tuple[float, float], min_coverage: float = 0.0) -> Judgement:
    """Read one completion.  A mode never falls back to another: what it needs and does not get is a status.

    Args:
        completion: of a back end.
        mode: ``expectation`` reads the probabilities, ``number`` and ``samples`` the text.
        scale: lowest and highest score.
        min_coverage: an expectation over a smaller share of the probability is no score.
    """
    if completion.finish == "too_long":
        return Judgement(None, "unsupported", f"too long for the model: {completion.error}")
    if completion.finish == "refusal":
        return Judgement(None, "refused", "the model or its server refused")
    if completion.finish == "no_probabilities" and mode == "expectation":
        return Judgement(None, "unsupported", f"{completion.error}: use mode number or samples")
    if completion.text is None:
        return Judgement(None, "failed", completion.error)
    if mode == "expectation" and completion.probabilities is not None:
        found = expectation(completion.probabilities)
        coverage = 0.0 if found is None else found.coverage
        if found is None or coverage < min_coverage:
            return Judgement(None, "unparsed", f"score tokens hold {coverage:.3f} of the probability", coverage)
        return Judgement(found.value, "ok", "", coverage)
    reply = parse_reply(completion.text, *scale)
    if reply.score is None:
        return Judgement(None, reply.status if reply.status != "ok" else "unparsed", _REASONS[reply.status])
    if mode == "expectation":
        return Judgement(None, "unparsed", "the score is not one token of the reply")
    return Judgement(reply.score, "ok")


def combine(judgements: Sequence[Judgement]) -> Repeated:
    """The mean over repetitions; a failed call among them fails the row, so that it is asked again.

    Replies without a score are left out of the mean and show as None in ``scores``.
    """
    scores = tuple(judgement.score for judgement in judgements)
    known = [score for score in scores if score is not None]
    spread = statistics.pstdev(known) if len(known) > 1 else None
    failed = next((judgement for judgement in judgements if judgement.status == "failed"), None)
    if failed is not None:
        return Repeated(failed, scores, spread)
    if not known:
        common = Counter(judgement.status for judgement in judgements).most_common(1)[0][0]
        return Repeated(next(j for j in judgements if j.status == common), scores, None)
    covered = [j.coverage for j in judgements if j.coverage is not None]
    coverage = statistics.fmean(covered) if covered else None
    return Repeated(Judgement(statistics.fmean(known), "ok", "", coverage), scores, spread)


_REASONS = {
    "empty": "the reply is empty",
    "refused": "the reply refuses",
    "unparsed": "no score, or several, in the reply",
    "out_of_range": "the score is not on the scale",
    "ok": "",
}
