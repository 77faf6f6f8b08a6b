"""Nouns, pronouns and names with their modifiers."""

from __future__ import annotations

from mdialeval.graphs.dependency.lexicon import (
    AGENTS,
    BODY,
    ENTITY_TYPES,
    INDEFINITE,
    KIN,
    MATERIALS,
    NATIONALITIES,
    NOUNS,
    OFFICES,
    PEOPLE,
    PLACE_ENTITIES,
    PRONOUNS,
    RESULT_NOUNS,
    SORTS,
    TEMPORAL,
    TITLES,
    UNDERGONE,
    WH_PERSON,
)
from mdialeval.graphs.dependency.modifiers import modifier
from mdialeval.graphs.dependency.prepositions import under_noun
from mdialeval.graphs.dependency.quantities import date, dayperiod, money, number, ordinal, quantify, quantity, value_of
from mdialeval.graphs.dependency.reading import Reading, Token, child, children, is_embedded, lemma, low


def noun(r: Reading, token: Token) -> int:
    """The node of a noun phrase (without its coordination)."""
    special = _pronoun(r, token)
    if special is None:
        special = _partitive(r, token)
    if special is not None:
        r.inner[token.i] = special
        _modifiers(r, token, special, special)
        return special
    head, outer = _concept(r, token)
    r.inner[token.i] = head
    _modifiers(r, token, head, outer)
    _mention(r, token, outer)
    return outer


def _mention(r: Reading, token: Token, node: int) -> None:
    """Remember who or what a later pronoun may mean."""
    if token.tag_ in ("NNS", "NNPS"):
        if token.dep_ in ("nsubj", "nsubjpass", "dobj"):
            r.mention("plural", node)
    elif lemma(token) in PEOPLE or lemma(token) in KIN or lemma(token) in AGENTS or token.ent_type_ == "PERSON":
        r.mention("person", node)
    elif token.dep_ in ("nsubj", "nsubjpass", "dobj") and lemma(token) not in TEMPORAL and lemma(token) not in NOUNS:
        r.mention("thing", node)


def _pronoun(r: Reading, token: Token) -> int | None:
    word = low(token)
    if token.pos_ == "PRON" or word in INDEFINITE:
        if word in PRONOUNS:
            return r.pronoun(word)
        if word in INDEFINITE:
            return r.draft.node(word)
    if word == "one" and any(low(c) == "no" for c in token.children):
        r.done.update(c.i for c in token.children if low(c) == "no")
        return r.draft.node("no-one")
    if word in WH_PERSON or (word in ("what", "which", "whatever") and token.dep_ != "det"):
        return _asked_or_free(r, token, "person" if word in WH_PERSON else "thing")
    if word in ("these", "those"):
        return r.draft.node("this" if word == "these" else "that")
    if token.pos_ == "NUM" or (word == "one" and token.tag_ in ("CD", "NN")):
        found = money(r, token)
        if found is None:
            found = date(r, token)
        if found is None and token.pos_ == "NUM" and value_of(token) is not None:
            if token.dep_ in ("nsubj", "dobj", "pobj", "nsubjpass") and value_of(token) == "1":
                return r.draft.node("one")
            if token.dep_ in ("ROOT", "appos", "nummod", "npadvmod", "pobj", "conj") or not token.children:
                return r.draft.node(value_of(token) or token.text)
        return found
    return None


def _asked_or_free(r: Reading, token: Token, kind: str) -> int:
    """What is asked for, or in *I know what he said* the thing that he said."""
    verb = token
    while verb.head.i != verb.i and not is_embedded(verb):
        verb = verb.head
    if not is_embedded(verb) or token.dep_ in ("det", "poss"):
        return r.draft.node("amr-unknown")
    while verb.dep_ == "xcomp" and is_embedded(verb.head):
        verb = verb.head
    node = r.draft.node(kind)
    r.free_relatives[verb.i] = node
    return node


def _partitive(r: Reading, token: Token) -> int | None:
    """``a cup of tea``, ``a lot of people``, ``two of them``, ``a kind of bird``: the noun after *of* heads."""
    of = next((c for c in children(token, "prep") if low(c) == "of"), None)
    inside = child(of, "pobj") if of is not None else None
    if of is None or inside is None:
        return None
    word = lemma(token)
    if word in ("lot", "plenty", "bit", "couple", "number", "dozen", "deal") or low(token) in ("lots",):
        node = r.node(inside)
        quant = {"lot": "lot", "number": "number", "couple": "couple"}.get(word, word)
        r.draft.edge(node, "quant", r.draft.node("many" if quant == "number" else quant))
    elif low(token) in ("all", "some", "many", "most", "none", "each", "any", "much", "both", "few", "several"):
        node = r.node(inside)
        if low(token) == "none":
            r.draft.value(node, "polarity", "-")
        else:
            role = "quant" if low(token) in ("some", "many", "most", "much", "few", "several") else "mod"
            r.draft.edge(node, role, r.draft.node(low(token)))
    elif low(token) == "one":
        whole = r.node(inside)
        node = r.draft.node("one" if inside.pos_ == "PRON" else lemma(inside))
        if inside.pos_ != "PRON":
            r.draft.value(node, "quant", "1")
        included = r.draft.node("include-91")
        r.draft.edge(included, "ARG1", node)
        r.draft.edge(included, "ARG2", whole)
    elif word in ("million", "thousand", "hundred", "billion") and low(token).endswith("s"):
        node = r.node(inside)
        multiple = r.draft.node("multiple")
        r.draft.value(multiple, "op1", number([word]) or word)
        r.draft.edge(node, "quant", multiple)
    elif word in SORTS:
        node = r.node(inside)
        sort = r.draft.node(word)
        r.draft.edge(node, "mod", sort)
        r.done.update((of.i, inside.i))
        _modifiers(r, token, sort, sort)
        return node
    elif word == "piece":
        node = r.node(inside)
        r.draft.edge(node, "quant", r.draft.node(word))
    else:
        return None
    r.done.update((of.i, inside.i))
    return node


def _concept(r: Reading, token: Token) -> tuple[int, int]:
    """(the node that modifiers describe, the node that the phrase stands for)."""
    if token.like_url or token.like_email:
        node = r.draft.node("url-entity" if token.like_url else "email-address-entity")
        r.draft.value(node, "value", '"' + token.text.replace('"', "") + '"')
        return node, node
    for rule in (quantity, date, dayperiod):
        found = rule(r, token)
        if found is not None:
            return found, found
    name = _name(r, token)
    if name is not None:
        return name, name
    word = _lemma_of(token)
    if token.pos_ == "PROPN" and token.text[:1].isupper() and word not in KIN and token.i > token.sent.start:
        return _named(r, token)
    if word in KIN or word in OFFICES:
        return _relative(r, token, word)
    if word in AGENTS:
        person, event = r.draft.node("person"), r.draft.node(AGENTS[word])
        r.draft.edge(event, "ARG0", person)
        return person, person
    if word in NOUNS:
        event = r.draft.node(NOUNS[word])
        if word in RESULT_NOUNS and token.dep_ not in ("compound",):
            thing = r.draft.node("thing")
            r.draft.edge(event, "ARG1", thing)
            r.inner[token.i] = thing
            return event, thing
        return event, event
    if word == "people":
        word = "person"
    node = r.draft.node(word)
    return node, node


def _lemma_of(token: Token) -> str:
    word = lemma(token)
    if (
        token.tag_ in ("NNS", "NNPS")
        and word == low(token)
        and word.endswith("s")
        and len(word) > 4
        and word[-2] not in "su"
    ):
        return word[:-1]
    return {"colour": "color", "neighbour": "neighbor", "harbour": "harbor", "honour": "honor"}.get(word, word)


def _name(r: Reading, token: Token) -> int | None:
    """A named entity whose last word this is: ``(c / city :name (n / name :op1 "Paris"))``."""
    word = low(token)
    if word in PLACE_ENTITIES and token.pos_ == "PROPN":
        return _entity(r, PLACE_ENTITIES[word], [token])
    if word in NATIONALITIES and token.pos_ in ("PROPN", "ADJ") and token.dep_ not in ("dobj", "pobj"):
        node = r.draft.node("country")
        r.draft.name(node, [NATIONALITIES[word]])
        return node
    if token.ent_type_ not in ENTITY_TYPES or token.pos_ != "PROPN":
        return None
    words = [
        t
        for t in token.subtree
        if t.ent_type_ == token.ent_type_
        and (t is token or t.head.i == token.i)
        and t.i <= token.i
        and t.pos_ == "PROPN"
    ]
    return _entity(r, ENTITY_TYPES[token.ent_type_], words)


def _named(r: Reading, token: Token) -> tuple[int, int]:
    """A proper noun that the entity recogniser did not type."""
    words = [c for c in children(token, "compound") if c.pos_ == "PROPN"]
    node = _entity(r, "person", [*words, token])
    return node, node


def _entity(r: Reading, kind: str, words: list[Token]) -> int:
    kept = [t for t in words if low(t) not in TITLES] or words
    r.done.update(t.i for t in words)
    node = r.draft.node(kind)
    r.draft.name(node, [t.text for t in kept])
    return node


def _relative(r: Reading, token: Token, word: str) -> tuple[int, int]:
    """``my brother``: a person in a relation; without an owner the noun is a concept of its own."""
    owner = child(token, "poss")
    of = next((c for c in children(token, "prep") if low(c) == "of"), None)
    owner = owner or (child(of, "pobj") if of is not None else None)
    if owner is None:
        node = r.draft.node(word)
        return node, node
    r.done.add(owner.i)
    if of is not None:
        r.done.add(of.i)
    person = r.draft.node("person")
    role = r.draft.node("have-rel-role-91" if word in KIN else "have-org-role-91")
    r.draft.edge(role, "ARG0", person)
    r.draft.edge(role, "ARG1", r.node(owner))
    r.draft.edge(role, "ARG2", r.draft.node(word))
    return person, person


def _modifiers(r: Reading, token: Token, head: int, outer: int) -> None:
    for c in token.children:
        if c.i in r.done:
            continue
        if c.dep_ in ("det", "predet"):
            _determiner(r, token, outer, c)
        elif c.dep_ == "poss":
            _possessor(r, token, head, outer, c)
        elif c.dep_ == "nummod":
            if ordinal(low(c)):
                _ordinal(r, outer, low(c))
            elif c.i > token.i and token.pos_ != "PROPN":
                r.draft.value(outer, "mod", value_of(c) or low(c))
            elif low(c) == "one" and low(token) in ("day", "morning", "evening", "night", "time"):
                r.draft.edge(outer, "mod", r.draft.node("one"))
            else:
                quantify(r, token, outer, c)
        elif c.dep_ == "compound" and low(c) in TITLES:
            r.done.add(c.i)
        elif c.dep_ == "compound" and low(c) in MATERIALS:
            r.draft.edge(outer, "consist-of", r.node(c))
        elif c.dep_ in ("amod", "compound", "nmod", "advmod", "neg", "npadvmod", "quantmod"):
            modifier(r, token, outer, c)
        elif c.dep_ == "prep":
            under_noun(r, token, head, outer, c)
        elif c.dep_ == "appos":
            _apposition(r, outer, c)
        elif c.dep_ in ("relcl", "acl"):
            r.relative(outer, token, c)
        elif c.dep_ in ("intj", "dep", "parataxis", "meta") and c.pos_ not in ("PUNCT", "SPACE"):
            r.draft.edge(outer, "mod", r.node(c))


def _ordinal(r: Reading, node: int, word: str) -> None:
    entity = r.draft.node("ordinal-entity")
    r.draft.value(entity, "value", ordinal(word) or "1")
    r.draft.edge(node, "ord", entity)


_DETERMINERS = frozenset(
    [
        "this",
        "that",
        "all",
        "every",
        "each",
        "some",
        "any",
        "another",
        "such",
        "both",
        "either",
        "neither",
        "half",
        "other",
        "these",
        "those",
    ]
)


def _determiner(r: Reading, token: Token, node: int, det: Token) -> None:
    word = low(det)
    r.done.add(det.i)
    if word == "no":
        r.draft.value(node, "polarity", "-")
    elif word in ("what", "which", "whatever", "whichever"):
        asked = word in ("what", "which") and not (
            word == "what" and any(low(c) in ("a", "an") for c in token.children)
        )
        r.draft.edge(node, "mod", r.draft.node("amr-unknown" if asked else "any"))
    elif word in ("many", "much", "few", "several"):
        r.draft.edge(node, "quant", r.draft.node(word))
    elif word in _DETERMINERS:
        concept = {"these": "this", "those": "that", "neither": "either"}.get(word, word)
        r.draft.edge(node, "mod", r.draft.node(concept))


def _possessor(r: Reading, token: Token, head: int, outer: int, owner: Token) -> None:
    word = _lemma_of(token)
    whose = r.draft.node("amr-unknown") if low(owner) == "whose" else r.node(owner)
    if word in NOUNS and not (word in RESULT_NOUNS and head == outer):
        r.draft.edge(head, "ARG1" if word in UNDERGONE else "ARG0", whose)
    elif word in BODY:
        r.draft.edge(whose, "part", outer)
    else:
        r.draft.edge(outer, "poss", whose)
    own = next((c for c in token.children if low(c) == "own"), None)
    if own is not None:
        r.done.add(own.i)


def _apposition(r: Reading, node: int, other: Token) -> None:
    target = r.node(other)
    named = r.draft.target(target, "name")
    if named is not None and not r.draft.has(node, "name"):
        r.draft.edge(node, "name", named)
    else:
        r.draft.edge(target, "domain", node)
