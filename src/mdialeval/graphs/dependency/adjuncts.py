"""What hangs on a clause beside its arguments: adverbs, prepositions, adverbial clauses, interjections, vocatives."""

from __future__ import annotations

from mdialeval.graphs.dependency.lexicon import CONJUNCTIONS, REPLYING, SAYING, TEMPORAL, UNITS, WH
from mdialeval.graphs.dependency.modifiers import adverb, subject_role
from mdialeval.graphs.dependency.prepositions import attach
from mdialeval.graphs.dependency.reading import Reading, Token, child, children, is_embedded, lemma, low

_SKIPPED = frozenset(
    [
        "punct",
        "aux",
        "auxpass",
        "cc",
        "conj",
        "preconj",
        "expl",
        "mark",
        "prt",
        "nsubj",
        "nsubjpass",
        "csubj",
        "csubjpass",
        "case",
    ]
)


def adjuncts(r: Reading, token: Token, node: int) -> None:
    """Attach everything on a verb that no rule has used yet."""
    for c in token.children:
        if c.i in r.done or c.dep_ in _SKIPPED:
            continue
        if c.dep_ == "advmod" and low(c) in WH:
            _question_adverb(r, token, node, c)
        elif c.dep_ == "advmod" and c.pos_ != "VERB":
            _adverb(r, token, node, c)
        elif c.dep_ == "prep":
            attach(r, token, node, c)
        elif c.dep_ == "npadvmod":
            _noun_adverbial(r, node, c)
        elif c.dep_ == "advcl":
            adverbial_clause(r, token, node, c)
        elif c.dep_ == "neg":
            continue
        elif c.dep_ in ("intj", "meta"):
            _interjection(r, token, node, c)
        elif c.dep_ in (
            "parataxis",
            "ccomp",
            "dep",
            "relcl",
            "acl",
            "xcomp",
            "appos",
            "acomp",
            "oprd",
            "attr",
            "dobj",
            "nmod",
            "nummod",
            "amod",
            "det",
            "compound",
            "pobj",
            "pcomp",
        ):
            _loose(r, token, node, c)


def _adverb(r: Reading, token: Token, node: int, c: Token) -> None:
    word = low(c)
    if any(x.dep_ == "advcl" for x in c.children) and word in ("even", "just", "as", "so"):
        for x in children(c, "advcl"):
            adverbial_clause(r, token, node, x)
    if word == "all" and any(low(x) == "at" for x in c.children):
        r.done.add(c.i)
        r.draft.edge(node, "degree", r.draft.node("at-all"))
        return
    if word in ("perhaps", "maybe", "possibly"):
        r.done.add(c.i)
        r.pending_modals[token.i] = "possible-01"
        return
    if word == "like":
        return
    if any(x.dep_ == "prep" and low(x) == "of" for x in c.children) and word == "because":
        r.done.add(c.i)
        for x in children(c, "prep"):
            attach(r, token, node, x)
        return
    adverb(r, token, node, c)
    for x in c.children:
        if x.dep_ == "prep" and x.i not in r.done:
            attach(r, token, node, x)
        elif x.dep_ == "advcl" and x.i not in r.done:
            adverbial_clause(r, token, node, x)


def _question_adverb(r: Reading, token: Token, node: int, c: Token) -> None:
    word = low(c)
    r.done.add(c.i)
    if word in ("when", "where") and token.dep_ in ("advcl", "relcl"):
        return
    embedded = is_embedded(token)
    unknown = r.draft.node(_EMBEDDED.get(word, "thing") if embedded else "amr-unknown")
    if embedded:
        r.free_relatives[token.i] = unknown
    if word == "why":
        cause = r.draft.node("cause-01")
        r.draft.edge(cause, "ARG1", node)
        r.draft.edge(cause, "ARG0", unknown)
    else:
        r.draft.edge(node, {"when": "time", "where": "location", "how": "manner"}.get(word, "mod"), unknown)


_EMBEDDED = {"where": "location", "when": "time", "how": "manner", "why": "thing"}


def _noun_adverbial(r: Reading, node: int, c: Token) -> None:
    word = lemma(c)
    if (c.pos_ == "PRON" and low(c).endswith("self")) or low(c).endswith("selves"):
        r.done.add(c.i)
        return
    target = r.node(c)
    dets = {low(x) for x in c.children}
    if (
        (word == "time" and dets & {"many", "three", "several", "every", "each"})
        or word in ("times",)
        or dets & {"every", "each"}
    ):
        role = "frequency"
    elif (
        word in UNITS
        and UNITS[word] == "temporal-quantity"
        and (dets & {"all", "long", "whole"} or any(x.dep_ == "nummod" for x in c.children))
        and "ago" not in dets
    ):
        role = "duration" if word not in ("day", "night") or not dets & {"one"} else "time"
    elif word in TEMPORAL or c.ent_type_ in ("DATE", "TIME"):
        role = "time"
    elif word in UNITS:
        role = "extent"
    elif word in ("way",):
        role = "manner"
    elif word in ("home",):
        role = "destination"
    elif word in ("bit", "lot", "deal", "little"):
        role = "degree"
    else:
        role = "mod"
    r.draft.edge(node, role, target)


def adverbial_clause(r: Reading, token: Token, node: int, c: Token) -> None:
    """if, when, because, although, to-infinitives, participles."""
    marks = [
        low(x) for x in c.children if x.dep_ in ("mark", "advmod") and x.i < c.i and x.pos_ in ("SCONJ", "ADP", "ADV")
    ]
    mark = next((m for m in marks if m in CONJUNCTIONS), "")
    infinitive = any(low(x) == "to" and x.dep_ == "aux" for x in c.children)
    subject = r.subjects.get(token.i)
    if child(c, "nsubj", "nsubjpass", "csubj", "expl") is None and subject is not None:
        r.subjects.setdefault(c.i, subject)
    for x in children(c, "mark"):
        r.done.add(x.i)
    for x in children(c, "advmod"):
        if low(x) == mark and mark in ("when", "while", "where", "whenever", "once", "as", "so", "now"):
            r.done.add(x.i)
    below = r.node(c)
    if c.pos_ == "ADJ" and subject is not None and not mark:
        role = subject_role(c)
        r.draft.edge(below, role, subject) if role else r.draft.edge(subject, "mod", below)
        return
    if infinitive and not mark:
        r.draft.edge(node, "purpose", below)
        return
    _linked(r, node, below, mark, marks, c)


def _linked(r: Reading, node: int, below: int, mark: str, marks: list[str], c: Token) -> None:
    link = CONJUNCTIONS.get(mark, "")
    if ("as" in marks and "if" in marks) or ("as" in marks and "though" in marks):
        r.draft.edge(node, "conj-as-if", below)
    elif link == "condition":
        if mark == "unless":
            r.draft.value(below, "polarity", "-")
        r.draft.edge(node, "condition", below)
        if "even" in marks:
            r.draft.edge(below, "mod", r.draft.node("even"))
    elif mark in ("after", "before", "until", "till", "since"):
        relation = r.draft.node("until" if mark == "till" else mark)
        r.draft.edge(relation, "op1", below)
        r.draft.edge(node, "time", relation)
    elif link == "cause":
        cause = r.draft.node("cause-01")
        r.draft.edge(cause, "ARG1", node)
        r.draft.edge(cause, "ARG0", below)
    elif link == "result":
        purpose = any(
            x.dep_ == "aux" and low(x) in ("can", "could", "may", "might", "will", "would") for x in c.children
        )
        if purpose:
            r.draft.edge(node, "purpose", below)
        else:
            cause = r.draft.node("cause-01")
            r.draft.edge(cause, "ARG0", node)
            r.draft.edge(cause, "ARG1", below)
    elif link == "resemble":
        same = r.draft.node("resemble-01")
        r.draft.edge(same, "ARG1", node)
        r.draft.edge(same, "ARG2", below)
    elif link:
        r.draft.edge(node, link, below)
    elif c.tag_ == "VBG":
        r.draft.edge(node, "manner" if c.i > c.head.i else "time", below)
    else:
        r.draft.edge(node, "manner" if c.tag_ == "VBN" else "mod", below)


def _interjection(r: Reading, token: Token, node: int, c: Token) -> None:
    word = low(c)
    if word == "please":
        r.done.add(c.i)
        r.draft.value(node, "polite", "+")
    elif word in ("well", "okay", "ok"):
        r.draft.edge(node, "mod", r.node(c))
    elif lemma(token) in SAYING and c.i < token.i and any(t.is_quote for t in token.doc[: token.i]):
        role = "ARG2" if lemma(token) in REPLYING else "ARG1"
        r.draft.edge(node, role if not r.draft.has(node, role) else "mod", r.node(c))
    else:
        r.draft.edge(node, "mod", r.node(c))


def _loose(r: Reading, token: Token, node: int, c: Token) -> None:
    """Clauses that hang together without a word that says how."""
    if c.pos_ in ("PUNCT", "SPACE", "SYM") and not any(x.pos_ in ("NOUN", "VERB", "PROPN", "ADJ") for x in c.subtree):
        return
    r.loose.append((c, r.node(c)))
