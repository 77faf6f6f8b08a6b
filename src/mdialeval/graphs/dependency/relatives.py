"""Clauses on nouns: relative clauses, participles, infinitives."""

from __future__ import annotations

from mdialeval.graphs.dependency.lexicon import NOUNS
from mdialeval.graphs.dependency.reading import (
    Reading,
    Token,
    child,
    lemma,
    low,
)


def relative(r: Reading, noun_node: int, token: Token, verb: Token) -> None:
    """A relative clause, participle or infinitive on a noun."""
    if verb.dep_ == "relcl":
        _relative_clause(r, noun_node, verb)
        return
    infinitive = any(low(c) == "to" and c.dep_ == "aux" for c in verb.children)
    if verb.tag_ == "VBG" and not infinitive:
        r.subjects.setdefault(verb.i, noun_node)
        r.node(verb)
    elif infinitive:
        target = r.node(verb)
        if lemma(token) in NOUNS:
            r.draft.edge(r.inner.get(token.i, noun_node), "ARG1", target)
        elif low(token) in (
            "something",
            "nothing",
            "anything",
            "thing",
            "things",
            "one",
            "everything",
            "person",
            "man",
        ) or lemma(token) in ("thing", "work", "question", "word"):
            r.draft.edge(r.core(verb), "ARG1" if not r.draft.has(r.core(verb), "ARG1") else "ARG0", noun_node)
        else:
            r.draft.edge(noun_node, "purpose", target)
    elif verb.pos_ == "VERB" and (verb.tag_ in ("VBN", "VBD") or verb.dep_ == "amod"):
        r.node(verb)
        r.draft.edge(r.core(verb), "ARG1", noun_node)
    else:
        target = r.node(verb)
        event = lemma(token) in NOUNS
        r.draft.edge(noun_node, "ARG1" if event else "topic" if verb.pos_ == "VERB" else "mod", target)


def _relative_clause(r: Reading, noun_node: int, verb: Token) -> None:
    pronoun = next(
        (t for t in verb.subtree if t.tag_ in ("WDT", "WP", "WRB", "WP$") and t.i < verb.i and _clause_of(t) == verb.i),
        None,
    )
    before = len(r.draft.edges)
    if pronoun is not None and pronoun.tag_ != "WRB":
        r.outer[pronoun.i] = noun_node
        r.inner[pronoun.i] = noun_node
        if pronoun.dep_ not in ("nsubj", "nsubjpass", "dobj", "pobj", "poss", "attr", "dative", "det"):
            r.done.add(pronoun.i)
    target = r.node(verb)
    core = r.core(verb)
    if pronoun is not None and pronoun.tag_ == "WRB":
        r.draft.edge(
            core, {"where": "location", "when": "time", "why": "purpose"}.get(low(pronoun), "manner"), noun_node
        )
        return
    new = list(r.draft.edges)[before:]
    if any(noun_node in (s, t) for s, _, t in new):
        return
    stranded = [c for c in verb.subtree if c.dep_ == "prep" and not list(c.children) and c.i > verb.i]
    if stranded and low(stranded[0]) in ("in", "on", "at"):
        r.draft.edge(core, "location", noun_node)
        return
    gap = core
    below = child(verb, "xcomp", "ccomp")
    if r.draft.has(core, "ARG1") and below is not None and not r.draft.has(r.core(below), "ARG1"):
        gap = r.core(below)
    free = next((role for role in ("ARG1", "ARG2", "ARG0") if not r.draft.has(gap, role)), "mod")
    if r.draft.concepts[gap][-1:].isdigit():
        r.draft.edge(gap, free, noun_node)
    else:
        r.draft.edge(noun_node, "mod", target)


def _clause_of(token: Token) -> int:
    """The index of the verb whose clause a token belongs to."""
    while token.head.i != token.i and token.dep_ not in ("relcl", "advcl", "ccomp", "acl"):
        token = token.head
    return int(token.i)
