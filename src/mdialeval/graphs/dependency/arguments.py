"""Objects and complements of a verb."""

from __future__ import annotations

from mdialeval.graphs.dependency.lexicon import HEARER, OBJECT_CONTROL, PEOPLE, PRONOUNS, REPLYING, SAYING, THINKING
from mdialeval.graphs.dependency.modifiers import subject_role
from mdialeval.graphs.dependency.reading import (
    SUBJECTS,
    Reading,
    Token,
    child,
    children,
    is_infinitive,
    lemma,
    low,
)


def objects_of(r: Reading, token: Token, node: int, name: str, objects: list[Token]) -> None:
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


def complements(r: Reading, token: Token, node: int, name: str, subject: int | None) -> None:
    for c in token.children:
        if c.i in r.done or c.dep_ not in ("xcomp", "ccomp", "acomp", "oprd", "attr"):
            continue
        if c.dep_ == "xcomp" or (c.dep_ == "ccomp" and child(c, *SUBJECTS) is None and is_infinitive(c)):
            _controlled(r, node, name, subject, c)
        elif c.dep_ == "ccomp" and c.i < token.i and lemma(token) not in SAYING and lemma(token) not in THINKING:
            r.loose.append((c, r.node(c)))
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
    if controller is not None and child(below, *SUBJECTS) is None:
        r.subjects.setdefault(below.i, controller)
    target = r.node(below)
    role = "ARG2" if taken and name not in HEARER and r.draft.has(node, "ARG1") else "ARG1"
    if (
        low(below) != ""
        and name in ("use", "take", "come", "go", "stop", "wait", "run", "stay", "sit")
        and is_infinitive(below)
    ):
        role = "purpose"
    r.draft.edge(node, role, target)


def _clausal(r: Reading, token: Token, node: int, name: str, subject: int | None, below: Token) -> None:
    """A clause as argument; direct speech is read with the speaker as ``I``."""
    word = lemma(token)
    person = child(below, "nsubj")
    if person is not None and is_infinitive(below) and (word in OBJECT_CONTROL or word in HEARER) and token.i < below.i:
        who = r.node(person)
        target = r.node(below)
        roles = ("ARG1", "ARG2") if word in OBJECT_CONTROL else ("ARG2", "ARG1")
        r.draft.edge(node, roles[0], who)
        r.draft.edge(node, roles[1], target)
        return
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
