"""What a preposition means, under a verb and under a noun."""

from __future__ import annotations

from mdialeval.graphs.dependency.lexicon import (
    BODY,
    CONTAINERS,
    DAYPERIODS,
    GROUPS,
    INSTRUMENTS,
    KIN,
    MANNERS,
    MATERIALS,
    MEANS,
    MOTION,
    NOUNS,
    PHRASES,
    PREPOSITION_NODES,
    PREPOSITIONS,
    RESULT_NOUNS,
    TEMPORAL,
    UNITS,
    VERB_PREPOSITIONS,
    WEEKDAYS,
)
from mdialeval.graphs.dependency.reading import Reading, Token, child, lemma, low


def attach(r: Reading, verb: Token, node: int, prep: Token) -> None:
    """A prepositional phrase under a verb or predicate."""
    r.done.add(prep.i)
    verb_lemma, word = lemma(verb), low(prep)
    objects = [c for c in prep.children if c.dep_ in ("pobj", "pcomp")]
    if not objects:
        _bare(r, node, prep, word)
        return
    for target in objects:
        _one(r, verb, verb_lemma, node, prep, word, target)
    for c in prep.children:
        if c.i not in r.done and c.dep_ in ("advmod", "neg", "npadvmod"):
            _on_preposition(r, node, objects[0], c)


def _one(r: Reading, verb: Token, verb_lemma: str, node: int, prep: Token, word: str, target: Token) -> None:
    if low(target) in ("all",) and word == "at":
        r.done.add(target.i)
        r.draft.edge(node, "degree", r.draft.node("at-all"))
        return
    fixed = (
        PHRASES.get(f"{word}_{low(target)}", "").split("/")
        if not any(c.dep_ in ("amod", "poss", "prep") for c in target.children)
        else None
    )
    if fixed is not None and len(fixed) == 2:
        r.done.add(target.i)
        r.draft.edge(node, fixed[0], r.draft.node(fixed[1]))
        return
    if word == "in" and low(target) == "order" and (aim := child(target, "acl")) is not None:
        r.done.update((target.i, aim.i))
        if verb.i in r.subjects:
            r.subjects.setdefault(aim.i, r.subjects[verb.i])
        r.draft.edge(node, "purpose", r.node(aim))
        return
    if word == "for" and low(target) in ("example", "instance"):
        r.done.add(target.i)
        example = r.draft.node("exemplify-01")
        r.draft.edge(example, "ARG0", node)
        return
    place = r.node(target)
    if word in ("like", "unlike"):
        same = r.draft.node("resemble-01")
        r.draft.edge(same, "ARG1", node)
        r.draft.edge(same, "ARG2", place)
        if word == "unlike":
            r.draft.value(same, "polarity", "-")
    elif word == "without":
        if target.dep_ == "pcomp":
            r.draft.value(place, "polarity", "-")
            r.draft.edge(node, "manner", place)
        else:
            r.draft.edge(node, "accompanier", place)
            r.draft.value(place, "polarity", "-")
    elif word in ("because", "due") or (word == "of" and low(prep.head) == "because"):
        _cause(r, node, place)
    elif word in ("except", "but", "besides"):
        except_ = r.draft.node("except-01")
        r.draft.edge(except_, "ARG2", node)
        r.draft.edge(except_, "ARG1", place)
    elif word == "instead" or (word == "of" and low(prep.head) == "instead"):
        r.draft.edge(node, "instead-of", place)
    elif f"{verb_lemma}_{word}" in VERB_PREPOSITIONS and not (_is_temporal(target) and word in ("in", "on", "at")):
        role = VERB_PREPOSITIONS[f"{verb_lemma}_{word}"]
        if r.draft.has(node, role):
            role = _role(r, verb, word, target)
        r.draft.edge(node, role, place)
    elif word == "of" and verb.pos_ == "ADJ":
        r.draft.edge(node, "ARG1" if not r.draft.has(node, "ARG1") else "ARG2", place)
    elif word in PREPOSITION_NODES:
        relation = r.draft.node(word)
        r.draft.edge(relation, "op1", place)
        temporal = _is_temporal(target) or word in ("after", "before", "until", "since") or target.dep_ == "pcomp"
        r.draft.edge(node, "time" if temporal else "location", relation)
    else:
        r.draft.edge(node, _role(r, verb, word, target), place)


def _cause(r: Reading, node: int, reason: int) -> None:
    cause = r.draft.node("cause-01")
    r.draft.edge(cause, "ARG1", node)
    r.draft.edge(cause, "ARG0", reason)


def _is_temporal(token: Token) -> bool:
    word = lemma(token)
    return (word in TEMPORAL or word in WEEKDAYS or token.ent_type_ in ("DATE", "TIME")) and low(token) not in ("end",)


def _role(r: Reading, verb: Token, word: str, target: Token) -> str:
    noun = lemma(target)
    counted = any(c.dep_ == "nummod" or low(c) in ("all", "long", "many") for c in target.children)
    if word in ("for", "over") and UNITS.get(noun) == "temporal-quantity":
        return "duration"
    if word == "for" and (target.pos_ == "PRON" or target.ent_type_ == "PERSON"):
        return "beneficiary"
    if _is_temporal(target) and word in ("in", "on", "at", "by", "from", "of"):
        return "time"
    if word == "with":
        return "instrument" if noun in INSTRUMENTS else "manner" if noun in MANNERS or noun in NOUNS else "accompanier"
    if word == "by":
        return (
            "manner"
            if target.dep_ == "pcomp"
            else "instrument"
            if noun in MEANS
            else "location"
            if not counted
            else "extent"
        )
    if word == "in" and (noun in MANNERS or noun in NOUNS):
        return "manner"
    if word == "at" and noun == "time":
        return "time"
    if word == "on" and target.dep_ == "pcomp":
        return "time"
    if word == "in" and target.dep_ == "pcomp":
        return "manner"
    if word == "to" and lemma(verb) in MOTION:
        return "destination"
    return PREPOSITIONS.get(word, f"prep-{word}" if word.isalpha() else "mod")


def _bare(r: Reading, node: int, prep: Token, word: str) -> None:
    """A preposition without an object: ``come in``, ``because of``, ``from under the table``."""
    inner = child(prep, "prep")
    if inner is not None:
        attach(r, prep.head, node, inner)
    elif word in ("in", "out", "up", "down", "on", "off", "over", "around", "by", "along", "inside", "outside"):
        r.draft.edge(node, "direction", r.draft.node(word))
    elif word in ("before", "since", "after"):
        r.draft.edge(node, "time", r.draft.node(word))


def _on_preposition(r: Reading, node: int, target: Token, token: Token) -> None:
    place = r.core(target)
    r.done.add(token.i)
    if token.dep_ == "neg":
        r.draft.value(place, "polarity", "-")
    elif low(token) in ("just", "only", "even", "exactly", "right", "almost"):
        r.draft.edge(place, "mod", r.draft.node("exact" if low(token) == "exactly" else low(token)))
    elif token.dep_ == "advmod" and low(token) not in ("up", "out", "down", "over", "away"):
        r.draft.edge(node, "mod", r.draft.node(low(token)))


def under_noun(r: Reading, token: Token, head: int, node: int, prep: Token) -> None:
    """A prepositional phrase under a noun."""
    r.done.add(prep.i)
    word, noun = low(prep), lemma(token)
    objects = [c for c in prep.children if c.dep_ in ("pobj", "pcomp")]
    for target in objects:
        place = r.node(target)
        if word == "of":
            _of(r, token, noun, head, node, target, place)
        elif word == "like":
            same = r.draft.node("resemble-01")
            r.draft.edge(same, "ARG1", node)
            r.draft.edge(same, "ARG2", place)
        elif word == "with":
            if lemma(target) in BODY:
                r.draft.edge(node, "part", place)
            else:
                having = r.draft.node("have-03")
                r.draft.edge(having, "ARG0", node)
                r.draft.edge(having, "ARG1", place)
        elif word == "without":
            having = r.draft.node("have-03")
            r.draft.edge(having, "ARG0", node)
            r.draft.edge(having, "ARG1", place)
            r.draft.value(having, "polarity", "-")
        elif word in ("except", "but"):
            except_ = r.draft.node("except-01")
            r.draft.edge(except_, "ARG2", node)
            r.draft.edge(except_, "ARG1", place)
        elif word == "than":
            r.draft.edge(node, "compared-to", place)
        elif noun in NOUNS and word in ("for", "to", "about", "on", "in", "at", "against") and noun not in RESULT_NOUNS:
            r.draft.edge(head, "ARG1", place) if word != "in" else r.draft.edge(head, "location", place)
        elif word in PREPOSITION_NODES:
            relation = r.draft.node(word)
            r.draft.edge(relation, "op1", place)
            r.draft.edge(node, "time" if word in ("after", "before", "since", "until") else "location", relation)
        elif word in ("in", "on", "at") and not _is_temporal(target):
            r.draft.edge(node, "location", place)
        else:
            role = _role(r, token, word, target)
            r.draft.edge(node, {"destination": "direction", "accompanier": "mod"}.get(role, role), place)


def _of(r: Reading, token: Token, noun: str, head: int, node: int, target: Token, place: int) -> None:
    inside = lemma(target)
    if noun in NOUNS:
        r.draft.edge(head, "ARG1" if not r.draft.has(head, "ARG1") or head != node else "ARG2", place)
    elif noun in CONTAINERS:
        holding = r.draft.node("contain-01")
        r.draft.edge(holding, "ARG0", node)
        r.draft.edge(holding, "ARG1", place)
    elif noun in GROUPS:
        r.draft.edge(node, "consist-of", place)
    elif noun in BODY or noun in (
        "part",
        "side",
        "top",
        "bottom",
        "edge",
        "end",
        "corner",
        "center",
        "middle",
        "rest",
        "surface",
        "half",
    ):
        r.draft.edge(place, "part", node)
    elif noun in ("picture", "photo", "drawing", "book", "story", "film", "movie", "map", "idea", "memory"):
        r.draft.edge(node, "topic", place)
    elif inside in MATERIALS:
        r.draft.edge(node, "consist-of", place)
    elif inside in TEMPORAL or inside in DAYPERIODS:
        r.draft.edge(node, "time", place)
    elif target.pos_ in ("PRON", "PROPN") or inside in KIN:
        r.draft.edge(node, "poss", place)
    else:
        r.draft.edge(node, "mod" if any(c.dep_ == "det" for c in target.children) is False else "poss", place)
