"""Modality, negation, imperative and question: what stands over a verb."""

from __future__ import annotations

from mdialeval.graphs.dependency.adjuncts import adjuncts
from mdialeval.graphs.dependency.lexicon import MODAL
from mdialeval.graphs.dependency.reading import (
    SUBJECTS,
    Reading,
    Token,
    child,
    children,
    is_infinitive,
    is_question,
    lemma,
    low,
    wh_word,
)


def semi_modal(r: Reading, token: Token) -> tuple[int, int] | None:
    """``have to``, ``be able to``, ``be going to``, ``used to``, ``let's``: (outer node, inner node)."""
    word, below = lemma(token), child(token, "xcomp")
    frame = None
    if (
        word in ("have", "get")
        and below is not None
        and child(token, "dobj") is None
        and is_infinitive(below)
        and lemma(below) != token.lemma_
    ):
        frame = ("obligate-01", "ARG2") if word == "have" or low(token) == "got" else None
    elif word == "ought" and below is not None:
        frame = ("recommend-01", "ARG1")
    elif word == "need" and below is not None and is_infinitive(below):
        return None
    elif word == "be":
        able = child(token, "acomp")
        below = child(able, "xcomp") if able is not None else None
        if able is not None and low(able) in ("able", "unable") and below is not None:
            frame = ("possible-01", "ARG1")
            r.done.add(able.i)
    elif (
        low(token) in ("going", "gon", "gonna", "used")
        and below is not None
        and is_infinitive(below)
        and child(token, "dobj") is None
    ):
        return _skip(r, token, below)
    elif word == "let" and any(low(c) in ("'s", "us") and c.head.i in (token.i, c.head.i) for c in token.children):
        inner = child(token, "ccomp", "xcomp")
        if inner is not None and token.dep_ == "ROOT":
            return _lets(r, token, inner)
    elif (
        word == "let"
        and token.dep_ == "ROOT"
        and (inner := child(token, "ccomp")) is not None
        and (who := child(inner, "nsubj")) is not None
        and low(who) in ("'s", "us")
    ):
        return _lets(r, token, inner)
    if frame is None or below is None:
        return None
    outer, inner_node = _skip(r, token, below)
    modal = r.draft.node(frame[0])
    r.draft.edge(modal, frame[1], outer)
    able_word = child(token, "acomp")
    if able_word is not None and low(able_word) == "unable":
        r.draft.value(modal, "polarity", "-")
    return modal, inner_node


def _skip(r: Reading, token: Token, below: Token) -> tuple[int, int]:
    """Read the infinitive in the place of the verb over it."""
    if token.i in r.subjects:
        r.subjects[below.i] = r.subjects[token.i]
    outer = r.node(below)
    inner = r.inner.get(below.i, outer)
    r.inner[token.i] = inner
    adjuncts(r, token, inner)
    return outer, inner


def _lets(r: Reading, token: Token, below: Token) -> tuple[int, int]:
    who = child(below, "nsubj")
    for word in (who, *token.children):
        if word is not None and low(word) in ("'s", "us"):
            r.done.add(word.i)
    r.subjects[below.i] = r.pronoun("we")
    outer = r.node(below)
    inner = r.inner.get(below.i, outer)
    r.inner[token.i] = inner
    r.draft.value(inner, "mode", "imperative")
    adjuncts(r, token, inner)
    return outer, inner


def finish(r: Reading, token: Token, outer: int, core: int) -> int:
    """Modal verbs, negation, imperative and question."""
    modal = None
    if token.i in r.pending_modals:
        modal = r.draft.node(r.pending_modals[token.i])
        r.draft.edge(modal, "ARG1", outer)
    for c in children(token, "aux") if modal is None else []:
        frame = (
            MODAL.get(low(c))
            if not (low(c) in ("may",) and c.i == token.sent.start and not is_question(token))
            else None
        )
        if low(c) == "should" and (lemma(token) == "like" or any(x.dep_ == "mark" for x in token.children)):
            continue
        if frame is not None and low(c) != "to":
            modal = r.draft.node(frame[0])
            r.draft.edge(modal, frame[1], outer)
            outer = modal
            break
    negatives = [c for c in children(token, "neg") if c.i not in r.done]
    for c in negatives:
        r.done.add(c.i)
        at = outer if outer != core or modal is not None else core
        r.draft.value(at, "polarity", "-")
        if low(c) == "never":
            r.draft.edge(core, "time", r.draft.node("ever"))
    if is_imperative(token):
        r.draft.value(core, "mode", "imperative")
        if not r.draft.has(core, "ARG0"):
            r.draft.edge(core, "ARG0", r.pronoun("you"))
    elif _is_polar(token):
        r.draft.value(outer, "mode", "interrogative")
    return outer


def is_imperative(token: Token) -> bool:
    """A bare verb form without a subject, at the head of a sentence, a quotation or a coordination."""
    if token.tag_ not in ("VB", "VBP") or token.dep_ not in ("ROOT", "conj", "ccomp", "parataxis", "dep"):
        return False
    if any(
        c.dep_ in SUBJECTS or c.dep_ == "expl" or (c.dep_ in ("aux", "auxpass") and low(c) not in ("do", "don't"))
        for c in token.children
    ):
        return False
    if lemma(token) == "thank":
        return False
    if token.dep_ == "conj":
        return is_imperative(token.head)
    if token.dep_ == "ccomp" and not (token.i < token.head.i or any(t.is_quote for t in token.children)):
        return False
    return not is_question(token) and not any(c.dep_ == "mark" for c in token.children)


def _is_polar(token: Token) -> bool:
    if token.dep_ not in ("ROOT", "ccomp", "parataxis", "conj") or not is_question(token) or wh_word(token) is not None:
        return False
    if token.dep_ == "ccomp":
        return (
            token.i < token.head.i
            or any(t.is_quote for t in token.children)
            or any(t.is_quote for t in token.doc[token.head.i : token.i])
        )
    asked = child(token, "ccomp")
    return not (asked is not None and asked.i < token.i)
