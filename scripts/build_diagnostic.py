"""Build data/diagnostic/diagnostic.jsonl (and sample.jsonl): each context with responses of constructed quality.

    python scripts/build_diagnostic.py

The contexts, the sensible, the contradicting and the generic responses are written by hand (contexts-*.jsonl).  The
off-topic response is the sensible response of a context on another topic, and the broken ones are made from the
sensible response: words shuffled, dropped or repeated (characters where a language has no blanks).  The labels say what
was constructed; no person has rated anything.
"""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

from mdialeval.languages import language

FOLDER = Path(__file__).resolve().parents[1] / "data" / "diagnostic"
LANGUAGES = ("en", "pt", "de", "fr", "es", "zh", "ja")
CLOSING = ".!?。！？…"
RATINGS: dict[str, dict[str, float]] = {
    "sensible": {"understandability": 1.0, "sensibleness": 1.0},
    "generic": {"understandability": 1.0, "sensibleness": 0.5},
    "contradicting": {"understandability": 1.0, "sensibleness": 0.0},
    "off_topic": {"understandability": 1.0, "sensibleness": 0.0},
    "shuffled_words": {"understandability": 0.0},
    "dropped_words": {"understandability": 0.0},
    "repeated_words": {"understandability": 0.0},
}
"""What each construction is meant to be, in [0, 1]; broken responses carry no sensibleness label."""
SAMPLE_LANGUAGES = ("en", "pt")
SAMPLE_STEP = 28
"""What slow scorers are tried on: every 28th context in two languages, 56 rows."""


def main() -> None:
    """Write every context x language x construction as one Example a line."""
    paths = sorted(FOLDER.glob("contexts-*.jsonl"))
    contexts = [json.loads(line) for path in paths for line in path.open(encoding="utf-8")]
    with (
        (FOLDER / "diagnostic.jsonl").open("w", encoding="utf-8") as out,
        (FOLDER / "sample.jsonl").open("w", encoding="utf-8") as sample,
    ):
        for index, context in enumerate(contexts):
            stranger = _other_topic(contexts, index)
            for code in LANGUAGES:
                for kind, ratings in RATINGS.items():
                    row = {
                        "id": f"{context['id']}-{kind}",
                        "language": code,
                        "context": context["context"][code],
                        "response": _response(kind, context, stranger, code),
                        "ratings": ratings,
                        "group": context["id"],
                        "system": kind,
                        "source_id": None if code == "en" else f"{context['id']}-{kind}",
                    }
                    line = json.dumps(row, ensure_ascii=False) + "\n"
                    out.write(line)
                    if index % SAMPLE_STEP == 0 and code in SAMPLE_LANGUAGES:
                        sample.write(line)


def _other_topic(contexts: list[dict], index: int) -> dict:
    """A context on another topic, the same for every language."""
    dice = random.Random(f"off-topic {contexts[index]['id']}")
    return dice.choice([c for c in contexts if c["topic"] != contexts[index]["topic"]])


def _response(kind: str, context: dict, stranger: dict, code: str) -> str:
    if kind == "off_topic":
        return stranger["sensible"][code]
    if kind in context:
        return context[kind][code]
    seed = hashlib.sha256(f"{context['id']} {kind} {code}".encode()).hexdigest()
    return _broken(kind, context["sensible"][code], language(code).spaced, random.Random(seed))


def _broken(kind: str, text: str, spaced: bool, dice: random.Random) -> str:
    """The text with its words shuffled, a third dropped or some repeated; the closing mark stays at the end."""
    closing = text[-1] if text[-1] in CLOSING else ""
    body = text[: len(text) - len(closing)]
    words = body.split() if spaced else list(body)
    if kind == "shuffled_words":
        mixed = words
        while mixed == words:
            mixed = dice.sample(words, len(words))
    elif kind == "dropped_words":
        gone = set(dice.sample(range(len(words)), max(2, round(len(words) * 0.35))))
        mixed = [word for place, word in enumerate(words) if place not in gone]
    else:
        twice = set(dice.sample(range(len(words)), max(2, round(len(words) * 0.3))))
        mixed = [word for place, word in enumerate(words) for _ in range(2 if place in twice else 1)]
    return (" " if spaced else "").join(mixed) + closing


if __name__ == "__main__":
    main()
