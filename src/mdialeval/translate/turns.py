"""The core of the verb ``translate``: items in, one ``Translation`` a turn out; it knows nothing of run folders.

Distinct turns and distinct sentences are translated once.  The cache holds sentences per leg of a route (so that
``pt`` and the routes over ``pt`` share their work) and whole turns with their flags (so that a second run is only
lookups).  A failing batch is halved until the bad sentence stands alone: its turn gets the status ``failed``.
Failures are never cached.
"""

from __future__ import annotations

import json
import logging
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from mdialeval.cache import Cache
from mdialeval.errors import BackendError, DataError
from mdialeval.languages import canonical
from mdialeval.records import Dialogue, Example, Flag, Translation, TranslationStatus, Turn, turn_id, turns_of
from mdialeval.segments import VERSION as SEGMENTS_VERSION
from mdialeval.segments import Piece, Prepared, clean, has_letters, join, prepare, restore
from mdialeval.translate.checks import VERSION as CHECKS_VERSION
from mdialeval.translate.checks import Policy, check, identifiable, policies
from mdialeval.translate.identify import Identified, identify_all
from mdialeval.translate.protocol import Attempting, Retrying, Translator, TurnTranslator
from mdialeval.translate.route import Leg, Route, Step

logger = logging.getLogger(__name__)


class Outcome(NamedTuple):
    """What became of one distinct turn; ``source`` is the cleaned text that was translated."""

    source: str
    hypothesis: str
    status: TranslationStatus
    flags: tuple[Flag, ...] = ()
    back: str | None = None


def translate_items(
    items: Sequence[Dialogue | Example],
    translator: Translator,
    source: str,
    target: str,
    *,
    cache: Cache | None = None,
    on_flag: Mapping[str, Policy] | None = None,
    back: Translator | None = None,
    batch_size: int = 64,
    max_failures: int | None = None,
) -> list[Translation]:
    """Translate every turn of every item: one ``Translation`` a turn, in order, whatever happens to it.

    ``Translation.source`` is the cleaned turn (``segments.clean``): what the engine saw, and what QE should see.

    Args:
        translator: a ``Route``, or an engine.
        cache: holds sentences and turns, keyed by the identities of the engines.
        on_flag: overrides of the default policies (``checks.FLAGS``); here only ``retry`` matters.
        back: translates the hypotheses back into the source language.
        batch_size: sentences a call; never changes the result.
        max_failures: stop past this many failed sentences.

    Raises:
        BackendError: the engine never answered, or more than ``max_failures`` sentences failed.
        ConfigError: the engine has no such pair, or ``on_flag`` names an unknown flag.
    """
    source, target = canonical(source), canonical(target)
    job = _Job(_legs(translator, source, target), cache, batch_size, max_failures)
    policy = policies(on_flag or {})
    turns = [(item.id, i, turn.text) for item in items for i, turn in enumerate(turns_of(item))]
    name = " > ".join(f"{leg.step.engine}:{leg.step.source}-{leg.step.target}" for leg in job.legs)
    if isinstance(translator, Route) and len(job.legs) == 1:
        translator = job.legs[0].translator
    returning = _Job(_legs(back, target, source), cache, batch_size, max_failures) if back else None
    if isinstance(translator, TurnTranslator):
        outcomes = _given(turns, translator, source, target, returning)
    else:
        distinct = list(dict.fromkeys(text for _, _, text in turns))
        found = _outcomes(distinct, job, policy, returning)
        outcomes = [found[text] for _, _, text in turns]
    return [
        Translation(turn_id(item, i), item, i, o.source, o.hypothesis, source, target, name, o.status, o.flags, o.back)
        for (item, i, _), o in zip(turns, outcomes, strict=True)
    ]


def rebuild(item: Dialogue | Example, translations: Sequence[Translation]) -> Dialogue | Example | None:
    """The item in the target language, with as many turns; None where a turn could not be translated.

    The id stays, since (id, language) is unique, and ``source_id`` names the original.  Ratings, group and system are
    carried over.

    Args:
        translations: those of this item, in any order.

    Raises:
        DataError: the translations are not one for each turn of the item, in one language.
    """
    turns = turns_of(item)
    by_turn = {t.turn: t for t in translations if t.item_id == item.id}
    languages = {t.language for t in by_turn.values()}
    if sorted(by_turn) != list(range(len(turns))) or len(languages) != 1 or len(translations) != len(turns):
        raise DataError(
            f"{item.id}: {len(turns)} turns, but translations of the turns {sorted(by_turn)} into {sorted(languages)}: "
            "give exactly one translation a turn, in one language"
        )
    if any(t.status in ("failed", "empty") for t in by_turn.values()):
        return None
    texts = tuple(Turn(by_turn[i].hypothesis, turn.speaker) for i, turn in enumerate(turns))
    (language,) = languages
    if isinstance(item, Dialogue):
        return replace(item, language=language, turns=texts, source_id=item.id)
    context, response = (texts, None) if item.response is None else (texts[:-1], texts[-1])
    return replace(item, language=language, context=context, response=response, source_id=item.id)


@dataclass
class _Job:
    """A route at work: its legs, the cache and the count of failures."""

    legs: tuple[Leg, ...]
    cache: Cache | None
    batch_size: int
    max_failures: int | None
    answered: bool = False
    failures: int = 0

    @property
    def identity(self) -> str:
        return " > ".join(leg.identity for leg in self.legs)

    @property
    def protects(self) -> bool:
        return all(getattr(leg.translator, "placeholders", False) for leg in self.legs)

    def sentences(self, texts: Sequence[str], retry: bool = False) -> dict[str, str | None]:
        """Each distinct sentence through all legs; None where a leg failed on it."""
        current: dict[str, str | None] = dict.fromkeys(texts)
        current.update((text, text) for text in texts)
        for leg in self.legs:
            inputs = list(dict.fromkeys(t for t in current.values() if t is not None and has_letters(t)))
            done = self._leg(leg, inputs, retry and isinstance(leg.translator, Retrying))
            current = {t: None if c is None else done.get(c, c) for t, c in current.items()}
        return current

    def _leg(self, leg: Leg, texts: Sequence[str], retry: bool) -> dict[str, str | None]:
        prefix = f"{'retry' if retry else 'sentence'}\0{leg.identity}\0"
        known = self.cache.get([prefix + text for text in texts]) if self.cache else [None] * len(texts)
        done: dict[str, str | None] = dict(zip(texts, known, strict=True))
        missing = [text for text in texts if done[text] is None]
        self.answered |= len(missing) < len(texts)
        size = max(self.batch_size, getattr(leg.translator, "least_batch", 1))
        for start in range(0, len(missing), size):
            batch = missing[start : start + size]
            answers = dict(zip(batch, self._call(leg, batch, retry), strict=True))
            done.update(answers)
            if self.cache:
                self.cache.put([(prefix + text, answer) for text, answer in answers.items() if answer is not None])
        return done

    def _call(self, leg: Leg, batch: Sequence[str], retry: bool) -> list[str | None]:
        """One call; a failing batch is halved until the bad sentence stands alone."""
        engine = leg.translator
        if isinstance(engine, Attempting):
            return self._attempted(engine.attempt(batch, leg.step.source, leg.step.target), batch)
        try:
            if retry and isinstance(engine, Retrying):
                answers = engine.retry(batch, leg.step.source, leg.step.target)
            else:
                answers = engine.translate(batch, leg.step.source, leg.step.target)
            if len(answers) != len(batch):
                raise BackendError(leg.step.engine, f"{len(answers)} translations came back for {len(batch)} sentences")
        except BackendError as error:
            if len(batch) > 1:
                middle = len(batch) // 2
                first = self._call(leg, batch[:middle], retry)
                return first + self._call(leg, batch[middle:], retry)
            self._failed(error, batch[0])
            return [None]
        self.answered = True
        return [clean_answer(answer) for answer in answers]

    def _attempted(self, answers: Sequence[str | BackendError], batch: Sequence[str]) -> list[str | None]:
        self.answered |= any(isinstance(answer, str) or not answer.retryable for answer in answers)
        kept: list[str | None] = []
        for answer, text in zip(answers, batch, strict=True):
            if isinstance(answer, BackendError):
                self._failed(answer, text)
                kept.append(None)
            else:
                kept.append(clean_answer(answer))
        return kept

    def _failed(self, error: BackendError, text: str) -> None:
        self.failures += 1
        logger.warning("%s; failed on %r", error, text[:80])
        if not self.answered and self.failures >= 3:
            hint = error.hint or "the engine has not answered once"
            raise BackendError(error.backend, error.problem, retryable=error.retryable, hint=hint) from error
        if self.max_failures is not None and self.failures > self.max_failures:
            hint = f"{self.failures} sentences failed, more than max_failures; what was translated is in the cache"
            raise BackendError(error.backend, error.problem, retryable=error.retryable, hint=hint) from error


def clean_answer(text: str) -> str:
    """An engine's answer as it is kept: NFC, single blanks, stripped.

    >>> clean_answer(" Ol\\u0061\\u0301  mundo ")
    'Olá mundo'
    """
    return unicodedata.normalize("NFC", " ".join(text.split()))


def _legs(translator: Translator, source: str, target: str) -> tuple[Leg, ...]:
    if isinstance(translator, Route):
        return translator.legs
    name = translator.identity.partition("/")[0]
    return (Leg(Step(name, source, target), translator),)


def _outcomes(
    texts: Sequence[str], job: _Job, policy: Mapping[str, Policy], returning: _Job | None
) -> dict[str, Outcome]:
    """The outcome of each distinct turn, from the cache of whole turns where it is there."""
    retried = ",".join(sorted(name for name, p in policy.items() if p == "retry"))
    parts = ("turn", job.identity, returning.identity if returning else "", retried, SEGMENTS_VERSION, CHECKS_VERSION)
    prefix = "\0".join(map(str, parts)) + "\0"
    known = job.cache.get([prefix + text for text in texts]) if job.cache else [None] * len(texts)
    found = {text: _decode(value) for text, value in zip(texts, known, strict=True) if value is not None}
    missing = [text for text in texts if text not in found]
    job.answered |= bool(found)
    if job.cache and found:
        logger.info("%d of %d distinct turns from the cache", len(found), len(texts))
    if missing:
        fresh = dict(zip(missing, _fresh(missing, job, policy, returning), strict=True))
        if job.cache:
            job.cache.put([(prefix + t, _encode(o)) for t, o in fresh.items() if o.status != "failed"])
        found.update(fresh)
    return found


def _encode(outcome: Outcome) -> str:
    flags = [[flag.name, flag.value, flag.detail] for flag in outcome.flags]
    return json.dumps([outcome.source, outcome.hypothesis, outcome.status, flags, outcome.back], ensure_ascii=False)


def _decode(value: str) -> Outcome:
    source, hypothesis, status, flags, back = json.loads(value)
    return Outcome(source, hypothesis, status, tuple(Flag(*f) for f in flags), back)


def _fresh(texts: Sequence[str], job: _Job, policy: Mapping[str, Policy], returning: _Job | None) -> list[Outcome]:
    source, target = job.legs[0].step.source, job.legs[-1].step.target
    prepared = [prepare(text, source) for text in texts]
    hypotheses = _translate(prepared, job, source, target)
    outcomes = _judged(prepared, hypotheses, source, target)
    again = [i for i, o in enumerate(outcomes) if any(policy.get(f.name) == "retry" for f in o.flags)]
    if again and any(isinstance(leg.translator, Retrying) for leg in job.legs):
        second = _translate([prepared[i] for i in again], job, source, target, retry=True)
        for i, outcome in zip(again, _judged([prepared[i] for i in again], second, source, target), strict=True):
            if not any(policy.get(f.name) == "retry" for f in outcome.flags):
                outcomes[i] = outcome
    if returning is None:
        return outcomes
    sent = [i for i, o in enumerate(outcomes) if o.status == "ok"]
    returned = _translate([prepare(outcomes[i].hypothesis, target) for i in sent], returning, target, source)
    backs = dict(zip(sent, returned, strict=True))
    return [o._replace(back=backs.get(i, o.hypothesis or None)) for i, o in enumerate(outcomes)]


def _translate(
    prepared: Sequence[Prepared], job: _Job, source: str, target: str, retry: bool = False
) -> list[str | None]:
    """Whole turns; None where a sentence failed.  A sentence whose placeholders were lost is sent again without."""
    pieces = [piece for p in prepared for piece in p.pieces if piece.sent]
    protects = job.protects
    first = job.sentences(list(dict.fromkeys(p.protected if protects else p.text for p in pieces)), retry)
    lost = [p.text for p in pieces if protects and p.masks and _restored(p, first[p.protected]) is None]
    plain = job.sentences(list(dict.fromkeys(lost)), retry)

    def answer(piece: Piece) -> str | None:
        if not protects:
            return first[piece.text]
        if not piece.masks:
            return first[piece.protected]
        return _restored(piece, first[piece.protected]) or plain.get(piece.text)

    joined: list[str | None] = []
    for p in prepared:
        answers = [answer(piece) for piece in p.pieces if piece.sent]
        whole = [a for a in answers if a is not None]
        joined.append(join(p, whole, source, target) if len(whole) == len(answers) else None)
    return joined


def _restored(piece: Piece, translated: str | None) -> str | None:
    return None if translated is None else restore(translated, piece.masks)


def _judged(prepared: Sequence[Prepared], hypotheses: Sequence[str | None], source: str, target: str) -> list[Outcome]:
    """Status and flags of some turns, whose languages are looked at together."""
    asked = [h for p, h in zip(prepared, hypotheses, strict=True) if h and p.sentences and identifiable(h)]
    identified = identify_all(asked, target)
    return [_judge(p, h, source, target, identified) for p, h in zip(prepared, hypotheses, strict=True)]


def _judge(
    prepared: Prepared, hypothesis: str | None, source: str, target: str, identified: Mapping[str, Identified | None]
) -> Outcome:
    """Status and flags of one turn."""
    text = prepared.text
    if hypothesis is None:
        return Outcome(text, "", "failed", (Flag("failed", None, "the engine gave no answer for a part of this turn"),))
    if not prepared.sentences:
        return Outcome(text, hypothesis, "passthrough")
    flags = check(text, hypothesis, source, target, identified=identified)
    empty = any(flag.name == "empty" for flag in flags)
    return Outcome(text, hypothesis, "empty" if empty else "ok", flags)


def _given(
    turns: Sequence[tuple[str, int, str]],
    translator: TurnTranslator,
    source: str,
    target: str,
    returning: _Job | None,
) -> list[Outcome]:
    """Turns whose translations exist already; they are checked like any other."""
    cleaned = [clean(text, source) for _, _, text in turns]
    ids = [turn_id(item, i) for item, i, _ in turns]
    found = translator.translate_turns(ids, cleaned, source, target)
    hypotheses = [t if h is None and not has_letters(t) else h for t, h in zip(cleaned, found, strict=True)]
    outcomes = _judged([prepare(text, source) for text in cleaned], hypotheses, source, target)
    if returning is None:
        return outcomes
    prepared = [prepare(o.hypothesis, target) for o in outcomes]
    backs = _translate(prepared, returning, target, source)
    return [o._replace(back=b) for o, b in zip(outcomes, backs, strict=True)]
