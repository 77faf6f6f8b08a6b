"""Adjectives and adverbs: on nouns, on other adjectives, and on verbs."""

from __future__ import annotations

from mdialeval.graphs.dependency.lexicon import (
    ADJECTIVE_SUBJECT,
    ADJECTIVES,
    COMPARATIVES,
    DEGREE,
    DIRECTIONS,
    FOCUS,
    FREQUENCY,
    NATIONALITIES,
    NEGATIONS,
    NEGATIVE_ADJECTIVES,
    NEGATIVE_PREFIXED,
    PLACES,
    TIME_ADVERBS,
)
from mdialeval.graphs.dependency.quantities import number, ordinal
from mdialeval.graphs.dependency.reading import Reading, Token, children, lemma, low

_QUANTIFIERS = frozenset(["many", "much", "few", "several", "more", "most", "less", "least", "fewer", "enough"])


def positive(token: Token) -> tuple[str, str]:
    """The positive form of an adjective or adverb and its degree: ``""``, ``more`` or ``most``."""
    word = low(token)
    degree = {"JJR": "more", "RBR": "more", "JJS": "most", "RBS": "most"}.get(token.tag_, "")
    if word in COMPARATIVES:
        return COMPARATIVES[word], "most" if word.endswith("st") else "more"
    form = lemma(token) if token.pos_ == "ADJ" or degree else word
    return form, degree if word not in ("more", "most", "less", "least") else ""


def adjective(r: Reading, token: Token) -> int:
    """The node of an adjective, with its degree; what it is said of is attached by the caller (``subject_role``)."""
    form, degree = positive(token)
    frame = ADJECTIVES.get(form) or ADJECTIVES.get(low(token))
    if form in NATIONALITIES:
        node = r.draft.node("country")
        r.draft.name(node, [NATIONALITIES[form]])
    else:
        node = r.draft.node(frame or _unprefixed(r, form)[0])
        if form in NEGATIVE_ADJECTIVES or (_unprefixed(r, form)[1] and frame is None):
            r.draft.value(node, "polarity", "-")
    r.inner[token.i] = node
    if degree:
        r.draft.edge(node, "degree", r.draft.node(degree))
    return node


def _unprefixed(r: Reading, form: str) -> tuple[str, bool]:
    """The adjective without its negative prefix, and whether there was one."""
    if form in NEGATIVE_PREFIXED:
        base = form[3:] if form.startswith("dis") else form[2:]
        return ADJECTIVES.get(base, base), True
    return form, False


def subject_role(token: Token) -> str:
    """The role of what an adjective is said of, or the empty string where it is no frame (then ``domain``)."""
    form, _ = positive(token)
    frame = ADJECTIVES.get(form) or ADJECTIVES.get(low(token))
    if frame is None and form in NEGATIVE_PREFIXED:
        frame = ADJECTIVES.get(form[3:] if form.startswith("dis") else form[2:])
    return ADJECTIVE_SUBJECT.get(form, "ARG1") if frame else ""


def describe(r: Reading, noun: int, token: Token, quality: int) -> None:
    """Say a quality of a noun: an argument of the adjective's frame, or ``:mod``."""
    role = subject_role(token)
    if role:
        r.draft.edge(quality, role, noun)
    else:
        r.draft.edge(noun, "mod", quality)


def modifier(r: Reading, noun_token: Token, noun: int, token: Token) -> None:
    """A word before (or an adverb after) a noun."""
    word = low(token)
    if token.i in r.done:
        return
    if token.dep_ == "neg" or word in NEGATIONS:
        r.done.add(token.i)
        r.draft.value(noun, "polarity", "-")
    elif ordinal(word) and token.pos_ in ("ADJ", "NUM"):
        entity = r.draft.node("ordinal-entity")
        r.draft.value(entity, "value", ordinal(word) or "1")
        r.draft.edge(noun, "ord", entity)
    elif word == "last" and token.pos_ == "ADJ" and noun_token.dep_ != "npadvmod":
        entity = r.draft.node("ordinal-entity")
        r.draft.value(entity, "value", "-1")
        r.draft.edge(noun, "ord", entity)
    elif word in _QUANTIFIERS and token.pos_ == "ADJ":
        quant = r.draft.node(word)
        r.draft.edge(noun, "quant", quant)
        r.inner[token.i] = quant
        adverbs_of(r, token, quant)
    elif word in ("own", "very") and token.pos_ == "ADJ":
        r.done.add(token.i)
    elif token.pos_ == "ADJ" or token.tag_ in ("JJ", "JJR", "JJS"):
        describe(r, noun, token, r.node(token))
        for other in children(token, "conj"):
            if other.pos_ == "ADJ" and other.i not in r.done:
                describe(r, noun, other, r.node(other))
    elif token.pos_ == "VERB":
        r.relative(noun, noun_token, token)
    elif token.pos_ == "ADV" or word in FOCUS:
        _adverb_on_noun(r, noun, token)
    elif token.dep_ == "npadvmod" or number([token.text]) is None:
        r.draft.edge(noun, "mod", r.node(token))
    else:
        r.draft.edge(noun, "mod", r.draft.node(number([token.text]) or token.text))


def _adverb_on_noun(r: Reading, noun: int, token: Token) -> None:
    word = low(token)
    r.done.add(token.i)
    role = (
        "location"
        if word in PLACES
        else "time"
        if word in ("then", "now")
        else "degree"
        if word in ("quite", "almost", "so")
        else "mod"
    )
    r.draft.edge(noun, role, r.draft.node(word))


def adverbs_of(r: Reading, token: Token, node: int) -> None:
    """Degree words, numbers and comparisons under an adjective or adverb."""
    for c in token.children:
        if c.i in r.done:
            continue
        word = low(c)
        if c.dep_ == "neg" or word in NEGATIONS:
            r.done.add(c.i)
            r.draft.value(node, "polarity", "-")
            if word == "never":
                r.draft.edge(node, "time", r.draft.node("ever"))
        elif c.dep_ == "advmod" or (c.dep_ in ("amod", "det") and word in DEGREE):
            r.done.add(c.i)
            if word == "how":
                r.draft.edge(node, "degree", r.draft.node("so" if not _asks(token) else "amr-unknown"))
            elif word in ("really", "truly"):
                real = r.draft.node("real-04")
                r.draft.edge(real, "ARG1", node)
            elif word == "as":
                if not any(low(x) == "as" for x in token.children if x.i > token.i):
                    r.draft.edge(node, "degree", r.draft.node("as"))
                else:
                    r.draft.edge(node, "degree", r.draft.node("equal"))
            elif (word in FOCUS and word not in DEGREE) or (word == "too" and c.i > token.i):
                r.draft.edge(node, "mod", r.draft.node(word))
            elif word in TIME_ADVERBS:
                r.draft.edge(node, "time", r.draft.node(word))
            else:
                degree = r.draft.node(adverb_concept(c)[0] if word.endswith("ly") else word)
                r.draft.edge(node, "degree", degree)
                adverbs_of(r, c, degree)
        elif c.dep_ == "npadvmod" and c.pos_ in ("NOUN", "PROPN"):
            role = "degree" if lemma(c) in ("bit", "lot", "little") else "quant"
            r.draft.edge(node, role, r.node(c))
        elif c.dep_ == "npadvmod" and c.pos_ == "ADJ":
            r.done.add(c.i)
            r.draft.edge(node, "degree", r.draft.node(word))
        elif c.dep_ == "prep" and word in ("than", "as"):
            _compared(r, node, c)


def _asks(token: Token) -> bool:
    return any(t.text.startswith("?") for t in token.sent)


def _compared(r: Reading, node: int, prep: Token) -> None:
    r.done.add(prep.i)
    for c in prep.children:
        if c.dep_ in ("pobj", "pcomp", "advcl", "ccomp", "prep", "amod"):
            if c.dep_ == "prep":
                continue
            r.draft.edge(node, "compared-to", r.node(c))
            return


def adverb_concept(token: Token) -> tuple[str, str]:
    """(concept, role of the verb in it): ``slowly`` -> (``slow-05``, ``ARG1``), ``gently`` -> (``gentle``, ``""``)."""
    word, _ = positive(token)
    word = low(token) if token.tag_ == "RB" else word
    if not word.endswith("ly") or len(word) < 5:
        return word, ""
    stem = word[:-2]
    candidates = [
        stem,
        stem[:-1] + "y" if stem.endswith("i") else stem + "le",
        stem + "l",
        stem + "y",
        stem[:-2] if stem.endswith("al") else stem,
    ]
    if word.endswith("ically"):
        candidates = [word[:-4]]
    for candidate in candidates:
        if candidate in ADJECTIVES:
            return ADJECTIVES[candidate], ADJECTIVE_SUBJECT.get(candidate, "ARG1")
    if stem.endswith("i"):
        return stem[:-1] + "y", ""
    if stem[-1:] in "b" or (
        stem.endswith(("gent", "id", "simp", "samp"))
        and stem
        not in (
            "rapid",
            "vivid",
            "timid",
            "stupid",
            "splendid",
            "solid",
            "diligent",
            "urgent",
            "negligent",
            "intelligent",
        )
    ):
        return stem + "le", ""
    return ("full" if stem == "ful" else "true" if stem == "tru" else stem), ""


def adverb(r: Reading, verb: Token, node: int, token: Token) -> None:
    """An adverb on a verb (or on a predicate): time, place, frequency, degree, focus or manner."""
    word = low(token)
    r.done.add(token.i)
    if word in ("never", "ne'er"):
        r.draft.value(node, "polarity", "-")
        r.draft.edge(node, "time", r.draft.node("ever"))
        return
    if word in NEGATIONS:
        r.draft.value(node, "polarity", "-")
        return
    if word in ("really", "truly", "actually"):
        real = r.draft.node("real-04")
        r.draft.edge(real, "ARG1", node)
        return
    if word in ("therefore", "thus", "hence") or (
        word == "so" and token.i < verb.i and not any(low(c) == "so" and c.head.pos_ == "ADJ" for c in [token])
    ):
        cause = r.draft.node("cause-01")
        r.draft.edge(cause, "ARG1", node)
        return
    if word in ("however", "though", "nevertheless", "nonetheless"):
        concession = r.draft.node("have-concession-91")
        r.draft.edge(concession, "ARG1", node)
        return
    concept, role = adverb_concept(token)
    form, degree = positive(token)
    if degree and not concept.endswith(tuple("0123456789")):
        concept, role = ADJECTIVES.get(form, form), "ARG1" if form in ADJECTIVES else ""
    if word == "please":
        r.draft.value(node, "polite", "+")
        return
    if word in ("sure", "surely"):
        concept, role = "sure-02", "ARG1"
    target = r.draft.node(concept)
    r.inner[token.i] = target
    if degree:
        r.draft.edge(target, "degree", r.draft.node(degree))
    adverbs_of(r, token, target)
    if role and word not in TIME_ADVERBS:
        r.draft.edge(target, role, node)
    else:
        r.draft.edge(node, _adverb_role(word, token, verb), target)


def _adverb_role(word: str, token: Token, verb: Token) -> str:
    if word in FREQUENCY:
        return "frequency"
    if word in TIME_ADVERBS:
        return "time"
    if word in PLACES:
        return "location"
    if word in DIRECTIONS:
        return "direction"
    if word in ("far", "long"):
        return "extent" if word == "far" else "duration"
    if word in FOCUS:
        return "mod"
    if word in DEGREE or word in ("all", "completely", "at-all"):
        return "degree"
    if word.endswith("ly") or word in ("well", "fast", "hard"):
        return "manner"
    return "mod"
