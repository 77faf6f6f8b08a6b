"""One turn: its sentences, a quotation joined with the words that say whose it is, and the pronouns over all of it."""

from __future__ import annotations

from collections.abc import Sequence

from mdialeval.graphs.dependency.lexicon import REPLYING, SAYING
from mdialeval.graphs.dependency.reading import SUBJECTS, Reading, Token, child, lemma
from mdialeval.graphs.dependency.sentence import sentence
from mdialeval.graphs.dependency.verbs import inverted_subject


def turn(r: Reading, docs: Sequence[Token]) -> int:
    """The node of a turn from its parsed sentences."""
    spans = [span for doc in docs for span in doc.sents if any(t.is_alpha or t.like_num for t in span)]
    spans = spans or [docs[0][:]]
    tops: list[int] = []
    i = 0
    while i < len(spans):
        tag = _speech_tag(spans[i], spans[i + 1]) if i + 1 < len(spans) else None
        tops.append(sentence(r, spans[i]) if tag is None else _reported(r, spans[i], spans[i + 1], tag))
        i += 1 if tag is None else 2
    if len(tops) == 1:
        return tops[0]
    joined = r.draft.node("multi-sentence")
    for number, top in enumerate(tops, 1):
        r.draft.edge(joined, f"snt{number}", top)
    return joined


def _speech_tag(quote: Token, following: Token) -> Token | None:
    """The verb of saying where the next sentence is only ``the flower replied`` or ``said the king``."""
    verb = following.root
    ends = quote[-1].is_quote or following[0].is_quote
    if not ends or lemma(verb) not in SAYING or child(verb, "ccomp", "xcomp") is not None:
        return None
    if child(verb, *SUBJECTS) is None and inverted_subject(verb) is None:
        return None
    return verb if verb.i - following.start < 8 else None


def _reported(r: Reading, quote: Token, following: Token, verb: Token) -> int:
    """Read the words around the quotation first: inside it ``I`` is their subject."""
    top = sentence(r, following)
    said, speaker = r.core(verb), r.subjects.get(verb.i)
    with r.speech({} if speaker is None else {"i": speaker}):
        content = sentence(r, quote)
    r.draft.edge(said, "ARG2" if lemma(verb) in REPLYING else "ARG1", content)
    return top
