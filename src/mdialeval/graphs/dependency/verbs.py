"""Clauses: the verb with its arguments, modality, negation and mood."""

from __future__ import annotations

from mdialeval.graphs.dependency.adjuncts import adjuncts
from mdialeval.graphs.dependency.copula import copula
from mdialeval.graphs.dependency.lexicon import (
    HEARER,
    MODAL,
    NEGATIVE_VERBS,
    PEOPLE,
    PRONOUNS,
    RAISING,
    REPLYING,
    SAYING,
    TIGHT_PARTICLES,
    UNACCUSATIVE,
    verb_frame,
)
from mdialeval.graphs.dependency.modifiers import subject_role
from mdialeval.graphs.dependency.reading import Reading, Token, child, children, is_question, lemma, low, wh_word

_SUBJECTS = ("nsubj", "nsubjpass", "csubj", "csubjpass")


def clause(r: Reading, token: Token) -> int:
    """The node of a clause (without its coordination): modal over verb over arguments."""
    _subject(r, token)
    semi = _semi_modal(r, token)
    if semi is not None:
        return _finish(r, token, *semi)
    core = copula(r, token) if lemma(token) == "be" else predicate(r, token)
    adjuncts(r, token, r.inner.get(token.i, core))
    return _finish(r, token, core, core)


def _subject(r: Reading, token: Token) -> None:
    if token.i in r.subjects:
        return
    subject = child(token, *_SUBJECTS)
    if subject is not None and low(subject) not in ("there",):
        r.inner.setdefault(token.i, -1)
        r.subjects[token.i] = r.node(subject)
        del r.inner[token.i]


def _semi_modal(r: Reading, token: Token) -> tuple[int, int] | None:
    """``have to``, ``be able to``, ``be going to``, ``used to``, ``let's``: (outer node, inner node)."""
    word, below = lemma(token), child(token, "xcomp")
    frame = None
    if (
        word in ("have", "get")
        and below is not None
        and child(token, "dobj") is None
        and _is_infinitive(below)
        and lemma(below) != token.lemma_
    ):
        frame = ("obligate-01", "ARG2") if word == "have" or low(token) == "got" else None
    elif word == "need" and below is not None and _is_infinitive(below):
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
        and _is_infinitive(below)
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


def _is_infinitive(token: Token) -> bool:
    return token.tag_ == "VB" or any(low(c) == "to" and c.dep_ == "aux" for c in token.children)


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
    frame = _sense(token, word) or verb_frame(word, low(particle) if particle is not None else "")
    node = r.draft.node(frame)
    r.inner[token.i] = node
    _negative_prefix(r, node, word)
    name = frame.rpartition("-")[0]
    passive = any(c.dep_ in ("auxpass", "nsubjpass", "csubjpass") for c in token.children)
    objects = [c for c in children(token, "dobj") if c.i not in r.done]
    subject = r.subjects.get(token.i)
    if subject is not None and name not in RAISING:
        moved = name in UNACCUSATIVE and not objects
        r.draft.edge(node, "ARG1" if passive or moved else "ARG0", subject)
    _objects(r, token, node, name, objects)
    agent = child(token, "agent")
    if agent is not None:
        r.done.add(agent.i)
        for c in agent.children:
            if c.dep_ in ("pobj", "pcomp"):
                r.draft.edge(node, "ARG0", r.node(c))
    _complements(r, token, node, name, subject)
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
        and child(token, "dobj") is not None
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


def _negative_prefix(r: Reading, node: int, word: str) -> None:
    if word in NEGATIVE_VERBS:
        r.draft.concepts[node] = NEGATIVE_VERBS[word]
        r.draft.value(node, "polarity", "-")


def _objects(r: Reading, token: Token, node: int, name: str, objects: list[Token]) -> None:
    for c in children(token, "dative"):
        r.done.add(c.i)
        inner = child(c, "pobj") if c.pos_ == "ADP" else c
        if inner is not None:
            r.draft.edge(node, "ARG2", r.node(inner))
    for c in objects:
        target = r.node(c)
        if name in REPLYING:
            role = "ARG1"
        elif (
            name in HEARER
            and (c.pos_ == "PROPN" or low(c) in PRONOUNS or c.ent_type_ == "PERSON" or lemma(c) in PEOPLE)
            and low(c) not in ("it", "this", "that")
        ):
            role = "ARG2"
        else:
            role = "ARG1"
        r.draft.edge(node, "ARG2" if role == "ARG1" and r.draft.has(node, "ARG1") else role, target)


def _complements(r: Reading, token: Token, node: int, name: str, subject: int | None) -> None:
    for c in token.children:
        if c.i in r.done or c.dep_ not in ("xcomp", "ccomp", "acomp", "oprd", "attr"):
            continue
        if c.dep_ == "xcomp" or (c.dep_ == "ccomp" and child(c, *_SUBJECTS) is None and _is_infinitive(c)):
            _controlled(r, node, name, subject, c)
        elif c.dep_ == "ccomp":
            _clausal(r, token, node, name, subject, c)
        else:
            _secondary(r, token, node, name, subject, c)


def _controlled(r: Reading, node: int, name: str, subject: int | None, below: Token) -> None:
    controller = r.draft.target(node, "ARG2") if name in HEARER else r.draft.target(node, "ARG1")
    taken = controller is not None and subject != controller
    if name in ("promise",):
        controller = None
    if controller is None:
        controller = subject
    if controller is not None and child(below, *_SUBJECTS) is None:
        r.subjects.setdefault(below.i, controller)
    target = r.node(below)
    role = "ARG2" if taken and name not in HEARER and r.draft.has(node, "ARG1") else "ARG1"
    if (
        low(below) != ""
        and name in ("use", "take", "come", "go", "stop", "wait", "run", "stay", "sit")
        and _is_infinitive(below)
    ):
        role = "purpose"
    r.draft.edge(node, role, target)


def _clausal(r: Reading, token: Token, node: int, name: str, subject: int | None, below: Token) -> None:
    """A clause as argument; direct speech is read with the speaker as ``I``."""
    word = lemma(token)
    quoted = word in SAYING and (
        below.i < token.i or any(t.text in '"' for t in token.doc[token.i + 1 : below.i] if t.is_quote)
    )
    if quoted and subject is not None:
        people = {"i": subject}
        hearer = r.draft.target(node, "ARG2") if name not in REPLYING else r.draft.target(node, "ARG1")
        if hearer is not None:
            people["you"] = hearer
        with r.speech(people):
            target = r.node(below)
    else:
        target = r.node(below)
    free = r.free_relatives.get(below.i)
    if free is not None:
        target = free
    role = "ARG2" if name in REPLYING else "ARG1"
    if r.draft.has(node, role):
        role = "ARG2" if role == "ARG1" else "ARG1"
    r.draft.edge(node, role, target)


def _secondary(r: Reading, token: Token, node: int, name: str, subject: int | None, c: Token) -> None:
    """``look sad``, ``become king``, ``call it love``, ``paint it red``."""
    target = r.node(c)
    about = r.draft.target(node, "ARG1")
    if name in (
        "look",
        "sound",
        "smell",
        "taste",
        "feel",
        "seem",
        "appear",
        "become",
        "get",
        "turn",
        "go",
        "grow",
        "remain",
        "stay",
        "keep",
    ):
        from_subject = subject
        for role in ("ARG0", "ARG1"):
            edge = (node, role, subject)
            if (
                subject is not None
                and edge in r.draft.edges
                and name not in ("feel", "become", "get", "turn", "remain", "stay")
            ):
                del r.draft.edges[edge]
        if name in ("become", "get", "turn", "remain", "stay", "go", "grow"):
            if subject is not None and (node, "ARG0", subject) in r.draft.edges:
                del r.draft.edges[node, "ARG0", subject]
            if subject is not None:
                r.draft.edge(node, "ARG1", subject)
            r.draft.edge(node, "ARG2", target)
        else:
            r.draft.edge(node, "ARG1", target)
        if from_subject is not None and c.dep_ == "acomp" and c.pos_ == "ADJ":
            about_subject = subject_role(c)
            if about_subject:
                r.draft.edge(r.core(c), about_subject, from_subject)
            else:
                r.draft.edge(r.core(c), "domain", from_subject)
    elif about is not None:
        r.draft.edge(node, "ARG2", target)
    else:
        r.draft.edge(node, "ARG1", target)


def _finish(r: Reading, token: Token, outer: int, core: int) -> int:
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
        c.dep_ in _SUBJECTS or c.dep_ == "expl" or (c.dep_ in ("aux", "auxpass") and low(c) not in ("do", "don't"))
        for c in token.children
    ):
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
