"""The state of reading one turn: which token became which node, and who the pronouns are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mdialeval.graphs.dependency.draft import Draft
from mdialeval.graphs.dependency.lexicon import NEGATIONS, PRONOUNS, WH

Token = Any
"""A ``spacy.tokens.Token`` (spaCy is imported by the parser alone)."""


SUBJECTS = ("nsubj", "nsubjpass", "csubj", "csubjpass")


class Reading:
    """One turn while it is read.

    Attributes:
        draft: the graph so far.
        inner: token index -> the node of the word itself.
        subjects: token index of a verb -> the node of its subject, own or inherited.
        done: tokens that another rule has already used.
        loose: clauses that hang on a word without saying how: (their head, their node).
        pending_modals: token index of a verb -> a modal frame that an adverb (*perhaps*) puts over it.
        free_relatives: token index of an embedded verb -> the thing, place or reason that *what he said* stands for.
    """

    def __init__(
        self,
        read: Callable[[Reading, Token], int],
        relative: Callable[[Reading, int, Token, Token], None],
    ) -> None:
        self.draft = Draft()
        self.inner: dict[int, int] = {}
        self.outer: dict[int, int] = {}
        self.subjects: dict[int, int] = {}
        self.done: set[int] = set()
        self.loose: list[tuple[Token, int]] = []
        self.pending_modals: dict[int, str] = {}
        self.free_relatives: dict[int, int] = {}
        self._read, self._relative = read, relative
        self._pronouns: dict[str, int] = {}
        self._mentions: dict[str, int] = {}
        self._scopes: list[dict[str, int]] = []

    def start_sentence(self) -> None:
        """Forget the tokens of the last sentence, keep who the pronouns are."""
        self.inner, self.outer, self.subjects, self.done = {}, {}, {}, set()
        self.loose, self.pending_modals, self.free_relatives = [], {}, {}

    def node(self, token: Token) -> int:
        """The node that stands for a token with all that hangs on it (its coordination, its modal)."""
        if token.i not in self.outer:
            self.done.add(token.i)
            self.outer[token.i] = self._read(self, token)
        return self.outer[token.i]

    def relative(self, noun: int, token: Token, clause: Token) -> None:
        """Read a relative clause or participle that hangs on a noun."""
        self.done.add(clause.i)
        self._relative(self, noun, token, clause)

    def core(self, token: Token) -> int:
        """The node of the word itself, under its coordination and modal."""
        outer = self.node(token)
        return self.inner.get(token.i, outer)

    def pronoun(self, form: str) -> int:
        """The node of a personal pronoun: one a turn, or the speaker inside direct speech."""
        concept = PRONOUNS[form]
        for scope in reversed(self._scopes):
            if concept in scope:
                return scope[concept]
        if concept not in self._pronouns:
            antecedent = self._mentions.get(
                {"he": "person", "she": "person", "it": "thing", "they": "plural"}.get(concept, "")
            )
            self._pronouns[concept] = self.draft.node(concept) if antecedent is None else antecedent
        return self._pronouns[concept]

    def mention(self, kind: str, node: int) -> None:
        """Let later pronouns mean this ``person``, ``thing`` or ``plural``."""
        self._mentions[kind] = node

    @contextmanager
    def speech(self, people: dict[str, int]) -> Iterator[None]:
        """Inside direct speech ``I`` is the speaker and ``you`` the hearer."""
        self._scopes.append(people)
        try:
            yield
        finally:
            self._scopes.pop()


def children(token: Token, *labels: str) -> list[Token]:
    """The children of a token with one of these dependency labels, in the order of the text."""
    return [child for child in token.children if child.dep_ in labels]


def child(token: Token, *labels: str) -> Token | None:
    """The first child with one of these labels."""
    return next((c for c in token.children if c.dep_ in labels), None)


def low(token: Token) -> str:
    """The token's text in lower case."""
    return str(token.lower_)


def lemma(token: Token) -> str:
    """The lemma in lower case, as a concept can carry it."""
    word = str(token.lemma_).lower().strip("-'’\"") or low(token)
    return "".join(c if c.isalnum() or c in "-'." else "-" for c in word).strip("-") or "thing"


def negated(token: Token) -> bool:
    """Whether ``not`` hangs on a token."""
    return any(c.dep_ == "neg" and low(c) in NEGATIONS for c in token.children)


def wh_word(token: Token) -> Token | None:
    """The question word inside a clause, not looking into clauses below it."""
    for c in token.subtree:
        if low(c) in WH and _same_clause(c, token):
            return c
    return None


def _same_clause(token: Token, verb: Token) -> bool:
    while token.i != verb.i:
        if token.dep_ in ("relcl", "ccomp", "advcl", "acl", "parataxis", "csubj", "conj", "pcomp", "xcomp"):
            return token.dep_ == "xcomp" and _same_clause(token.head, verb)
        token = token.head
    return True


def is_question(token: Token) -> bool:
    """Whether the clause ends in a question mark."""
    subtree = list(token.subtree)
    if any(c.text.startswith("?") for c in token.children):
        return True
    last = subtree[-1]
    if last.text.startswith("?"):
        return True
    following = last.i + 1 < len(last.doc) and last.doc[last.i + 1]
    return bool(following is not False and following.text.startswith("?"))


def is_embedded(token: Token) -> bool:
    """Whether a clause is part of another one, as *what he said* in *I know what he said* (not direct speech)."""
    if token.dep_ not in ("ccomp", "pcomp", "csubj", "csubjpass", "xcomp"):
        return False
    if token.dep_ == "xcomp" and wh_word(token) is None:
        return False
    quoted = any(t.is_quote for t in token.doc[min(token.head.i, token.i) : max(token.head.i, token.i)])
    return not quoted and (token.head.i < token.i or token.dep_.startswith("csubj"))


def is_infinitive(token: Token) -> bool:
    """Whether a verb is a bare or a *to* infinitive."""
    return token.tag_ == "VB" or any(low(c) == "to" and c.dep_ == "aux" for c in token.children)
