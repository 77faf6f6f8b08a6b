"""From a token to its node, by part of speech; coordination, relative clauses, and the top of a sentence."""

from __future__ import annotations

from mdialeval.graphs.dependency.adjuncts import adjuncts
from mdialeval.graphs.dependency.lexicon import ANSWERS, GREETINGS, INTERJECTIONS, SAYING, WH
from mdialeval.graphs.dependency.modifiers import adjective, adverb_concept, adverbs_of, subject_role
from mdialeval.graphs.dependency.nouns import noun
from mdialeval.graphs.dependency.prepositions import attach
from mdialeval.graphs.dependency.reading import SUBJECTS, Reading, Token, child, is_question, lemma, low, wh_word
from mdialeval.graphs.dependency.verbs import clause

_NOMINAL = frozenset(["NOUN", "PROPN", "PRON", "NUM", "DET", "SYM", "X"])
_VERBAL = frozenset(["VERB", "AUX"])


def read(r: Reading, token: Token) -> int:
    """The node of a token with its coordination."""
    chain, words = _chain(token)
    if len(chain) == 1:
        node = _single(r, token)
        return r.free_relatives.get(token.i, node) if token.dep_ != "ROOT" else node
    nodes = []
    for i, part in enumerate(chain):
        r.done.add(part.i)
        if i and part.pos_ in _VERBAL and child(part, *SUBJECTS) is None and chain[0].i in r.subjects:
            r.subjects.setdefault(part.i, r.subjects[chain[0].i])
        node = _single(r, part)
        if i:
            r.outer[part.i] = node
        nodes.append(node)
    return _joined(r, nodes, words)


def _chain(token: Token) -> tuple[list[Token], list[str]]:
    """The coordinated tokens from the first on, and the conjunction before each of the others."""
    chain, words = [token], []
    at = token
    while True:
        following = [c for c in at.children if c.dep_ == "conj"]
        if not following:
            break
        cc = [low(c) for c in at.children if c.dep_ == "cc" and c.i > at.i]
        for other in following:
            chain.append(other)
            words.append(cc[0] if cc else "")
        at = following[-1]
    for i in range(len(words) - 2, -1, -1):
        words[i] = words[i] or words[i + 1]
    return chain, words


def _joined(r: Reading, nodes: list[int], words: list[str]) -> int:
    result, kind = nodes[0], ""
    count = 1
    for node, word in zip(nodes[1:], words, strict=True):
        if word in ("but", "yet"):
            contrast = r.draft.node("contrast-01")
            r.draft.edge(contrast, "ARG1", result)
            r.draft.edge(contrast, "ARG2", node)
            result, kind = contrast, "contrast"
            continue
        concept = "or" if word in ("or", "nor") else "and"
        if kind != concept:
            both = r.draft.node(concept)
            r.draft.edge(both, "op1", result)
            result, kind, count = both, concept, 1
        count += 1
        r.draft.edge(result, f"op{count}", node)
        if word == "so":
            cause = r.draft.node("cause-01")
            r.draft.edge(cause, "ARG0", nodes[0])
            r.draft.edge(cause, "ARG1", node)
    return result


def _single(r: Reading, token: Token) -> int:
    word = low(token)
    if token.like_url or token.like_email:
        return noun(r, token)
    if (
        word in INTERJECTIONS
        or token.pos_ == "INTJ"
        or (word in ANSWERS and token.dep_ in ("intj", "ROOT") and token.pos_ != "VERB")
    ):
        return _interjection(r, token)
    if token.pos_ in _VERBAL and not _only_auxiliary(token):
        return clause(r, token)
    if token.pos_ == "ADJ":
        return _adjective(r, token)
    if token.pos_ in ("ADV", "SCONJ", "PART", "CCONJ"):
        return _adverb(r, token)
    if token.pos_ == "ADP":
        return _preposition(r, token)
    node = noun(r, token)
    if child(token, *SUBJECTS, "aux", "cop") is not None or token.dep_ in ("ROOT", "ccomp", "parataxis"):
        _rest(r, token, r.inner.get(token.i, node))
    return node


def _only_auxiliary(token: Token) -> bool:
    return token.dep_ in ("aux", "auxpass") and not list(token.children)


def _interjection(r: Reading, token: Token) -> int:
    word = low(token)
    word = {
        "ok": "okay",
        "yeah": "yes",
        "yep": "yes",
        "yup": "yes",
        "nope": "no",
        "hm": "hmm",
        "hey": "hey",
        "bye": "goodbye",
    }.get(word, word)
    if word in GREETINGS:
        node = r.draft.node(GREETINGS[word])
    elif word in ("thanks", "thank"):
        node = r.draft.node("thank-01")
    elif word == "please":
        node = r.draft.node("please-01")
    else:
        node = r.draft.node("".join(c if c.isalnum() else "-" for c in word).strip("-") or "thing")
        if low(token) in INTERJECTIONS:
            r.draft.value(node, "mode", "expressive")
    r.inner[token.i] = node
    _rest(r, token, node)
    return node


def _adjective(r: Reading, token: Token) -> int:
    word = low(token)
    if token.dep_ in ("nsubj", "dobj", "pobj") and word in (
        "little",
        "much",
        "more",
        "enough",
        "same",
        "rest",
        "other",
        "others",
        "such",
    ):
        node = r.draft.node(word.rstrip("s") if word == "others" else word)
        r.inner[token.i] = node
    else:
        node = adjective(r, token)
    adverbs_of(r, token, node)
    for c in token.children:
        if c.i in r.done:
            continue
        if c.dep_ == "prep":
            attach(r, token, node, c)
        elif c.dep_ in ("xcomp", "ccomp"):
            _adjective_complement(r, token, node, c)
    if token.dep_ in ("ROOT", "ccomp", "xcomp", "conj", "advcl", "parataxis", "relcl"):
        subject = child(token, "nsubj")
        if subject is not None and subject.i not in r.done:
            role = subject_role(token)
            r.draft.edge(node, role or "domain", r.node(subject))
        _rest(r, token, node)
    return node


def _adjective_complement(r: Reading, token: Token, node: int, c: Token) -> None:
    """``glad to see you``, ``sure that he comes``, ``easy to find``."""
    r.done.add(c.i)
    subject = r.subjects.get(token.head.i) if token.dep_ in ("acomp", "attr") else r.subjects.get(token.i)
    if c.dep_ == "xcomp" and subject is not None:
        r.subjects.setdefault(c.i, subject)
    target = r.node(c)
    if (
        low(token)
        in (
            "easy",
            "hard",
            "difficult",
            "impossible",
            "good",
            "possible",
            "nice",
            "important",
            "better",
            "best",
            "necessary",
            "useless",
            "useful",
            "strange",
            "dangerous",
        )
        or target in r.free_relatives.values()
    ):
        r.draft.edge(node, "ARG1" if r.draft.concepts[node][-1:].isdigit() else "domain", target)
    elif low(token) in ("enough", "ready", "late", "early", "old", "young", "weak", "small", "big", "tired", "busy"):
        r.draft.edge(node, "ARG2" if r.draft.concepts[node][-1:].isdigit() else "purpose", target)
    elif r.draft.concepts[node][-1:].isdigit():
        role = (
            "ARG1"
            if subject is not None and low(token) in ("afraid", "sure", "certain", "curious", "aware", "proud")
            else "ARG2"
            if low(token) in ("happy", "sorry", "sad")
            else "ARG0"
            if low(token) in ("glad", "pleased", "surprised")
            else "ARG2"
        )
        r.draft.edge(node, role, target)
    else:
        r.draft.edge(node, "topic", target)


def _adverb(r: Reading, token: Token) -> int:
    word = low(token)
    if word in WH:
        node = r.draft.node("amr-unknown")
        if word == "why":
            cause = r.draft.node("cause-01")
            r.draft.edge(cause, "ARG0", node)
            node = cause
    elif word in ("not", "n't"):
        node = r.draft.node("no")
    else:
        node = r.draft.node(adverb_concept(token)[0])
    r.inner[token.i] = node
    adverbs_of(r, token, node)
    _rest(r, token, node)
    return node


def _preposition(r: Reading, token: Token) -> int:
    """A prepositional phrase that stands for itself (``In the garden.``, ``from where``)."""
    target = child(token, "pobj", "pcomp")
    if target is None:
        node = r.draft.node("".join(c for c in low(token) if c.isalnum()) or "thing")
        r.inner[token.i] = node
        _rest(r, token, node)
        return node
    holder = r.draft.node("thing")
    r.inner[token.i] = holder
    attach(r, token.head, holder, token)
    edges = [e for e in r.draft.edges if e[0] == holder]
    if len(edges) == 1 and not any(e[2] == holder for e in r.draft.edges):
        del r.draft.edges[edges[0]]
        r.inner[token.i] = edges[0][2]
        _rest(r, token, edges[0][2])
        return edges[0][2]
    _rest(r, token, holder)
    return holder


def _rest(r: Reading, token: Token, node: int) -> None:
    """What hangs on a word that is the head of a sentence without being a verb."""
    if token.dep_ in ("ROOT", "ccomp", "parataxis", "conj", "dep", "intj", "advcl"):
        for c in token.children:
            if c.dep_ in SUBJECTS and c.i not in r.done and c.pos_ in _NOMINAL:
                r.draft.edge(node, "domain", r.node(c))
        adjuncts(r, token, node)
        if (
            is_question(token)
            and token.dep_ in ("ROOT",)
            and wh_word(token) is None
            and token.pos_ in ("NOUN", "PROPN", "ADJ", "ADV")
        ):
            r.draft.value(node, "mode", "interrogative")


def sentence(r: Reading, span: Token) -> int:
    """The node of one spaCy sentence."""
    r.start_sentence()
    root = span.root
    top = r.node(root)
    free = r.free_relatives.get(root.i)
    if free is not None and free != top and root.pos_ not in _VERBAL:
        top = free
    parts = [top]
    for token, node in r.loose:
        if token.head.i == root.i and lemma(token) in SAYING and token.i in r.subjects:
            r.draft.edge(r.core(token), "ARG1", parts[0])
            parts[0] = node
        elif node != parts[0]:
            if token.i < root.i:
                parts.insert(0, node)
            else:
                parts.append(node)
    if len(parts) > 1:
        top = _listed(r, list(dict.fromkeys(parts)))
    else:
        top = parts[0]
    return _opening(r, root, top)


def _listed(r: Reading, parts: list[int]) -> int:
    """Clauses side by side under ``and``; an ``and`` that opens the list takes up the others."""
    both, ops = r.draft.node("and"), 0
    if r.draft.concepts[parts[0]] == "and":
        both, parts = parts[0], parts[1:]
        ops = sum(s == both and role.startswith("op") for s, role, _ in r.draft.edges)
    for i, part in enumerate(parts, ops + 1):
        r.draft.edge(both, f"op{i}", part)
    return both


def _opening(r: Reading, root: Token, top: int) -> int:
    """``But`` and ``And`` at the beginning."""
    first = next((low(c) for c in root.children if c.dep_ == "cc" and c.i < root.i), "")
    if first == r.draft.concepts[top]:
        return top
    if first in ("but", "yet"):
        contrast = r.draft.node("contrast-01")
        r.draft.edge(contrast, "ARG2", top)
        return contrast
    if first in ("and", "or"):
        both = r.draft.node(first)
        r.draft.edge(both, "op2", top)
        return both
    return top
