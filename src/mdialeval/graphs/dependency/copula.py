"""Clauses with *be*: what is said of the subject is the head."""

from __future__ import annotations

from mdialeval.graphs.dependency.lexicon import DIRECTIONS, PLACES, TEMPORAL
from mdialeval.graphs.dependency.modifiers import adverb, subject_role
from mdialeval.graphs.dependency.prepositions import attach
from mdialeval.graphs.dependency.reading import Reading, Token, child, children, lemma, low

_LOCATIVE = frozenset(
    [
        "in",
        "on",
        "at",
        "under",
        "above",
        "below",
        "behind",
        "between",
        "beside",
        "among",
        "near",
        "over",
        "around",
        "inside",
        "outside",
        "by",
        "within",
        "next",
        "across",
        "beyond",
    ]
)


def copula(r: Reading, token: Token) -> int:
    """The node of a clause whose verb is *be*."""
    subject = r.subjects.get(token.i)
    there = any(c.dep_ == "expl" and low(c) == "there" for c in token.children)
    attribute = next((c for c in children(token, "attr", "acomp", "oprd") if c.i not in r.done), None)
    if there:
        return _existential(r, token, attribute)
    if attribute is None and (subject_token := child(token, "dobj")) is not None:
        attribute = subject_token
    stands_for = _expletive(token) if attribute is not None else None
    if stands_for is not None:
        subject = r.node(stands_for)
        r.subjects[token.i] = subject
    if attribute is not None:
        return _predicative(r, token, attribute, subject)
    prep = next((c for c in children(token, "prep") if c.i not in r.done), None)
    if prep is not None and subject is not None:
        return _prepositional(r, token, prep, subject)
    clausal = child(token, "ccomp", "xcomp", "advcl")
    why = child(clausal, "advmod") if clausal is not None else None
    if clausal is not None and why is not None and low(why) == "why" and subject is not None:
        r.done.update((why.i, clausal.i))
        node = r.draft.node("cause-01")
        r.inner[token.i] = node
        r.draft.edge(node, "ARG0", subject)
        r.draft.edge(node, "ARG1", r.node(clausal))
        return node
    clausal = child(token, "ccomp", "xcomp")
    if clausal is not None:
        node = r.node(clausal)
        r.inner[token.i] = r.inner.get(clausal.i, node)
        if subject is not None:
            r.draft.edge(node, "domain", subject)
        return node
    return _adverbial(r, token, subject)


def _existential(r: Reading, token: Token, attribute: Token | None) -> int:
    if attribute is None:
        attribute = child(token, "nsubj", "dobj")
    if attribute is None:
        node = r.draft.node("exist-01")
    else:
        node = r.node(attribute)
    r.inner[token.i] = node
    return node


def _expletive(token: Token) -> Token | None:
    """The clause that *it* stands for in ``it is good that ...``, ``it is time to ...``."""
    it = child(token, "nsubj")
    if it is None or low(it) != "it":
        return None
    return next((c for c in children(token, "ccomp", "xcomp", "csubj") if c.i > token.i), None)


def _predicative(r: Reading, token: Token, attribute: Token, subject: int | None) -> int:
    age = _age(r, attribute, subject)
    if age is not None:
        r.inner[token.i] = age
        return age
    node = r.node(attribute)
    head = r.inner.get(attribute.i, node)
    r.inner[token.i] = head
    if subject is None:
        return node
    targets = [attribute, *children(attribute, "conj")]
    for target in targets:
        at = r.core(target)
        role = subject_role(target) if target.pos_ == "ADJ" or target.tag_.startswith("JJ") else ""
        if role and r.draft.has(at, role):
            role = "ARG2" if role == "ARG1" else "ARG1"
        if role:
            r.draft.edge(at, role, subject)
        elif target.pos_ == "VERB":
            r.draft.edge(at, "ARG1" if target.tag_ == "VBN" else "ARG0", subject)
        else:
            at = r.outer.get(target.i, at) if target is not attribute and target.pos_ != "ADJ" else at
            r.draft.edge(at, "domain", subject)
    return node


def _age(r: Reading, attribute: Token, subject: int | None) -> int | None:
    """``six years old``: age-01."""
    years = child(attribute, "npadvmod")
    if lemma(attribute) != "old" or years is None or subject is None:
        return None
    node = r.draft.node("age-01")
    r.draft.edge(node, "ARG1", subject)
    r.draft.edge(node, "ARG2", r.node(years))
    r.done.add(attribute.i)
    return node


def _prepositional(r: Reading, token: Token, prep: Token, subject: int) -> int:
    word, target = low(prep), child(prep, "pobj", "pcomp")
    if target is None:
        return _adverbial(r, token, subject)
    if word == "like":
        r.done.add(prep.i)
        node = r.draft.node("resemble-01")
        r.inner[token.i] = node
        r.draft.edge(node, "ARG1", subject)
        r.draft.edge(node, "ARG2", r.node(target))
        return node
    if word in _LOCATIVE and lemma(target) in TEMPORAL and word != "by":
        frame = "be-temporally-at-91"
    elif word in _LOCATIVE:
        frame = "be-located-at-91"
    elif word == "from":
        frame = "be-from-91"
    elif word == "for":
        frame = "have-purpose-91"
    else:
        frame = "be-located-at-91" if word in ("to", "into", "up", "down") else ""
    if not frame:
        node = r.node(target)
        r.done.add(prep.i)
        r.inner[token.i] = node
        r.draft.edge(node, "topic" if word == "about" else "poss" if word == "of" else "domain", subject)
        return node
    node = r.draft.node(frame)
    r.inner[token.i] = node
    r.draft.edge(node, "ARG1", subject)
    if frame == "be-located-at-91":
        holder = r.draft.node("thing")
        attach(r, token, holder, prep)
        _move(r, holder, node)
    else:
        r.done.add(prep.i)
        r.draft.edge(node, "ARG2", r.node(target))
    return node


def _move(r: Reading, holder: int, node: int) -> None:
    """Make what was attached to a placeholder the ARG2 of *be-located-at*."""
    for source, role, target in [e for e in r.draft.edges if e[0] == holder]:
        del r.draft.edges[source, role, target]
        r.draft.edge(node, "ARG2" if not r.draft.has(node, "ARG2") else role, target)


def _adverbial(r: Reading, token: Token, subject: int | None) -> int:
    """``Where are you?``, ``I am here``, ``How are you?``, ``Yes, I am``."""
    place = next(
        (
            c
            for c in children(token, "advmod")
            if low(c) in PLACES or low(c) in DIRECTIONS or low(c) in ("where", "wherever")
        ),
        None,
    )
    if place is not None and subject is not None:
        r.done.add(place.i)
        node = r.draft.node("be-located-at-91")
        r.inner[token.i] = node
        r.draft.edge(node, "ARG1", subject)
        r.draft.edge(node, "ARG2", r.draft.node("amr-unknown" if low(place) == "where" else low(place)))
        return node
    how = next((c for c in children(token, "advmod") if low(c) in ("how", "why", "when")), None)
    if how is not None and low(how) == "how" and subject is not None:
        r.done.add(how.i)
        node = r.draft.node("amr-unknown")
        r.inner[token.i] = node
        r.draft.edge(node, "domain", subject)
        return node
    if subject is not None:
        r.inner[token.i] = subject
        return subject
    node = r.draft.node("be-01")
    r.inner[token.i] = node
    for c in children(token, "advmod"):
        if c.i not in r.done:
            adverb(r, token, node, c)
    return node
