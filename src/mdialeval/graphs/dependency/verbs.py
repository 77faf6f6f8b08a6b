"""Clauses: the verb with its arguments, modality, negation and mood."""

from __future__ import annotations

from mdialeval.graphs.dependency.adjuncts import adjuncts
from mdialeval.graphs.dependency.arguments import complements, objects_of
from mdialeval.graphs.dependency.copula import copula
from mdialeval.graphs.dependency.lexicon import (
    GIVING,
    LIGHT_VERBS,
    MODAL,
    NEGATIVE_VERBS,
    NOUNS,
    RAISING,
    RESULT_NOUNS,
    SAYING,
    TIGHT_PARTICLES,
    UNACCUSATIVE,
    UNDERGONE,
    verb_frame,
)
from mdialeval.graphs.dependency.moods import finish, semi_modal
from mdialeval.graphs.dependency.reading import (
    SUBJECTS,
    Reading,
    Token,
    child,
    children,
    lemma,
    low,
)


def clause(r: Reading, token: Token) -> int:
    """The node of a clause (without its coordination): modal over verb over arguments."""
    _subject(r, token)
    semi = semi_modal(r, token)
    if semi is not None:
        return finish(r, token, *semi)
    core = copula(r, token) if lemma(token) == "be" else predicate(r, token)
    adjuncts(r, token, r.inner.get(token.i, core))
    return finish(r, token, core, core)


def _subject(r: Reading, token: Token) -> None:
    if token.i in r.subjects:
        return
    subject = child(token, *SUBJECTS) or inverted_subject(token)
    if subject is not None and low(subject) not in ("there",):
        r.inner.setdefault(token.i, -1)
        r.subjects[token.i] = r.node(subject)
        del r.inner[token.i]


def inverted_subject(token: Token) -> Token | None:
    """``"..." , said the king``: the speaker after a verb of saying, whatever the dependency parser calls him."""
    if lemma(token) not in SAYING or token.tag_ not in ("VBD", "VBZ", "VBP"):
        return None
    opens = token.dep_ == "ROOT" and all(t.is_punct for t in token.doc[token.sent.start : token.i])
    if not opens and not any(c.i < token.i and (c.is_quote or c.dep_ in ("ccomp", "intj")) for c in token.children):
        return None
    return next(
        (
            c
            for c in children(token, "dobj", "npadvmod", "attr", "oprd", "dep")
            if c.i > token.i and c.pos_ in ("NOUN", "PROPN", "PRON") and c.i - token.i < 5
        ),
        None,
    )


def predicate(r: Reading, token: Token) -> int:
    """A lexical verb with its arguments."""
    word = lemma(token)
    particle = child(token, "prt")
    if particle is None:
        particle = next(
            (
                c
                for c in token.children
                if c.dep_ in ("advmod", "prep") and f"{word}_{low(c)}" in TIGHT_PARTICLES and not list(c.children)
            ),
            None,
        )
    if particle is not None:
        r.done.add(particle.i)
    if token.tag_ == "MD" and low(token) in MODAL:
        node = r.inner[token.i] = r.draft.node(MODAL[low(token)][0])
        if token.i in r.subjects:
            r.draft.edge(node, "ARG1", r.subjects[token.i])
        return node
    event = _light(r, token, word)
    if event is not None:
        return event
    frame = _sense(token, word) or verb_frame(word, low(particle) if particle is not None else "")
    node = r.draft.node(frame)
    r.inner[token.i] = node
    _negative_prefix(r, node, word)
    name = frame.rpartition("-")[0]
    passive = any(c.dep_ in ("auxpass", "nsubjpass", "csubjpass") for c in token.children)
    subject = r.subjects.get(token.i)
    objects = [
        c for c in children(token, "dobj") if c.i not in r.done and (subject is None or subject != r.outer.get(c.i))
    ]
    if subject is not None and name not in RAISING:
        moved = name in UNACCUSATIVE and not objects
        receives = passive and bool(objects) and name in GIVING
        r.draft.edge(node, "ARG2" if receives else "ARG1" if passive or moved else "ARG0", subject)
    elif subject is None and name == "thank":
        r.draft.edge(node, "ARG0", r.pronoun("i"))
    objects_of(r, token, node, name, objects)
    agent = child(token, "agent")
    if agent is not None:
        r.done.add(agent.i)
        for c in agent.children:
            if c.dep_ in ("pobj", "pcomp"):
                r.draft.edge(node, "ARG0", r.node(c))
    complements(r, token, node, name, subject)
    return node


def _sense(token: Token, word: str) -> str | None:
    """Senses that the complement decides."""
    if word == "make" and child(token, "ccomp", "oprd", "xcomp") is not None:
        return "make-02"
    if word in ("look", "sound", "smell", "taste", "feel") and child(token, "acomp", "oprd") is not None:
        return {"look": "look-02", "sound": "sound-02", "feel": "feel-01"}.get(word, f"{word}-01")
    if word in ("get", "turn", "grow", "go") and child(token, "acomp") is not None:
        return {"get": "get-03", "turn": "turn-02", "go": "go-04"}.get(word, "grow-02")
    if word == "know" and any(
        c.dep_ == "dobj"
        and (
            c.pos_ == "PROPN"
            or c.ent_type_ == "PERSON"
            or low(c) in ("him", "her", "them", "you", "me", "someone", "anyone")
        )
        for c in token.children
    ):
        return "know-02"
    if word == "ask" and child(token, "xcomp") is not None:
        return "ask-02"
    if word == "ask" and any(c.dep_ == "prep" and low(c) == "for" for c in token.children):
        return "ask-02"
    if (
        word == "call"
        and child(token, "oprd") is None
        and (child(token, "dobj") is not None or child(token, "auxpass") is not None)
        and child(token, "ccomp", "xcomp") is None
    ):
        return "call-02"
    if word == "bear" and token.tag_ == "VBN":
        return "bear-02"
    if word == "like" and any(c.dep_ == "aux" and low(c) in ("would", "'d") for c in token.children):
        return "like-02"
    if word == "grow" and child(token, "dobj") is not None:
        return "grow-03"
    if word == "run" and child(token, "dobj") is not None:
        return "run-01"
    if word == "play" and any(
        lemma(c) in ("music", "piano", "guitar", "violin", "song") for c in children(token, "dobj")
    ):
        return "play-11"
    return None


def _light(r: Reading, token: Token, word: str) -> int | None:
    """``take a walk``: the event is the head."""
    things = children(token, "dobj")
    if word not in LIGHT_VERBS or not things or any(c.dep_ in ("auxpass", "prt", "dative") for c in token.children):
        return None
    event = lemma(things[0])
    if (
        event not in NOUNS
        or event in RESULT_NOUNS
        or any(c.dep_ in ("poss", "relcl", "conj") for c in things[0].children)
    ):
        return None
    r.node(things[0])
    node = r.core(things[0])
    r.inner[token.i] = node
    if token.i in r.subjects:
        r.draft.edge(node, "ARG1" if event in UNDERGONE else "ARG0", r.subjects[token.i])
    return node


def _negative_prefix(r: Reading, node: int, word: str) -> None:
    if word in NEGATIVE_VERBS:
        r.draft.concepts[node] = NEGATIVE_VERBS[word]
        r.draft.value(node, "polarity", "-")
