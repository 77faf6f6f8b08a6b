"""The corpora that this project reads: what they hold, their scale, size and licence, and where to get them.

Figures are those of the publications, or counted in the published files.  Nothing here is downloaded or shipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mdialeval.errors import ConfigError, nearest


@dataclass(frozen=True, slots=True)
class Dataset:
    """One corpus.

    Attributes:
        name: as in ``mdialeval data list``.
        reader: an entry of the table of readers.
        what: one sentence for people.
        languages: canonical codes.
        rows: of its files or parts.
        licence: as its publisher states it; check before use.
        where: the page to get it from.
        scales: dimension -> (lowest, highest) where people rated it.
        options: of the reader, as in a configuration.
    """

    name: str
    reader: str
    what: str
    languages: tuple[str, ...]
    rows: str
    licence: str
    where: str
    scales: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)


_XDIAL = ("en", "ar", "zh", "fr", "de", "hi", "ja", "ko", "ru", "es")
_XDIAL_PAGE = "https://github.com/e0397123/xDial-Eval"


def _xdial(name: str, rows: int, what: str, scale: tuple[float, float] = (1.0, 5.0)) -> Dataset:
    return Dataset(
        f"xdial-{name}",
        "xdial",
        f"xDial-Eval: {what}, one averaged human rating, machine-translated from English",
        _XDIAL,
        f"{rows:,} responses in each of ten languages",
        "GPL-3.0",
        _XDIAL_PAGE,
        {"overall": scale},
    )


_ALL = (
    Dataset(
        "dailydialog",
        "dailydialog",
        "everyday dialogues written for learners of English",
        ("en",),
        "13,118 dialogues (11,118 train, 1,000 validation, 1,000 test)",
        "CC BY-NC-SA 4.0",
        "http://yanran.li/dailydialog",
    ),
    Dataset(
        "dailydialogpp",
        "dailydialogpp",
        "contexts, each with five good, five adversarial and five random responses (good or bad by construction)",
        ("en",),
        "contexts: 9,259 train, 1,028 dev, 1,142 test",
        "none stated",
        "https://github.com/iitmnlp/DailyDialog-plusplus",
        {"sensibleness": (0.0, 1.0)},
    ),
    _xdial("dailydialog-zhao", 900, "nine responses in each of 100 DailyDialog contexts"),
    _xdial("dailydialog-gupta", 500, "five responses in each of 100 DailyDialog contexts"),
    _xdial("dailydialog-grade", 300, "coherence of responses in DailyDialog"),
    _xdial("convai2-grade", 600, "coherence of responses in ConvAI2"),
    _xdial("empathetic-grade", 300, "coherence of responses in EmpatheticDialogues"),
    _xdial("persona-usr", 300, "responses in 60 PersonaChat contexts", (1.0, 3.0)),
    _xdial("persona-zhao", 900, "responses in PersonaChat"),
    _xdial("fed-turn", 375, "chats with Meena, Mitsuku and people"),
    _xdial("conture-turn", 1066, "chats with eleven systems of DSTC9"),
    Dataset(
        "maia",
        "maia",
        "customer support through machine translation, rated turn by turn; about 98 % are rated good",
        ("de", "pt", "pt-PT", "en"),
        "de 4,809 and 1,309; pt 2,737 and 469; pt-PT 361",
        "CC BY-ND 4.0",
        "https://github.com/johndmendonca/MAIA-DQE",
        {"understandability": (0.0, 1.0), "sensibleness": (0.0, 1.0)},
    ),
    Dataset(
        "dialevalml",
        "dialevalml",
        "50 contexts with five responses each, machine-translated and partly post-edited, without ratings",
        ("en", "pt", "de", "fr", "es", "ja", "zh"),
        "250 responses in each language",
        "MIT",
        "https://github.com/johndmendonca/DialEvalML",
    ),
    Dataset(
        "holistic",
        "holistic",
        "fluency of responses, and their coherence with a context, ten raters each",
        ("en",),
        "200 responses and 200 pairs",
        "none stated",
        "https://github.com/alexzhou907/dialogue_evaluation",
        {"fluency": (1.0, 5.0), "coherence": (1.0, 5.0)},
    ),
    Dataset(
        "personachat",
        "personachat",
        "PersonaChat and ConvAI2: two people with given personas get to know each other",
        ("en",),
        "ConvAI2: 17,878 dialogues train, 1,000 validation",
        "MIT (ParlAI); the crowd's texts: none stated",
        "https://parl.ai/projects/convai2",
    ),
    Dataset(
        "xpersona",
        "xpersona",
        "PersonaChat in other languages: training part machine-translated, the rest corrected by people",
        ("en", "zh", "fr", "id", "it", "ja", "ko"),
        "about 17,000 dialogues train in each language",
        "MIT",
        "https://github.com/HLTCHKUST/Xpersona",
    ),
    Dataset(
        "topicalchat",
        "topicalchat",
        "people talk about eight topics with something to read",
        ("en",),
        "10,784 conversations",
        "CDLA-Sharing-1.0",
        "https://github.com/alexa/Topical-Chat",
    ),
    Dataset(
        "dstc11",
        "dstc11",
        "DSTC11 track 4: translated dialogues (CSV) and rated responses (JSON)",
        ("en", "es", "zh"),
        "393,000 dialogues train; 13 rated sets dev",
        "Apache-2.0; the corpora inside: their own",
        "https://chateval.org/dstc11",
    ),
    Dataset(
        "fed-turn",
        "fed",
        "chats with Meena, Mitsuku and people, responses rated on nine dimensions",
        ("en",),
        "375 responses",
        "none stated",
        "http://shikib.com/fed_data.json",
        {"overall": (0.0, 4.0), "understandability": (0.0, 1.0), "relevant": (0.0, 2.0)},
    ),
    Dataset(
        "fed-dial",
        "fed",
        "the same chats, rated as whole dialogues on eleven dimensions; every one also occurs in fed-turn",
        ("en",),
        "125 dialogues",
        "none stated",
        "http://shikib.com/fed_data.json",
        {"overall": (0.0, 4.0), "coherent": (0.0, 2.0), "consistent": (0.0, 1.0)},
        {"level": "dialogue"},
    ),
    Dataset(
        "usr",
        "usr",
        "responses in PersonaChat and Topical-Chat rated on six dimensions by three people",
        ("en",),
        "300 and 360 responses in 60 contexts each",
        "none stated",
        "http://shikib.com/usr",
        {"overall": (1.0, 5.0), "understandability": (0.0, 1.0), "maintains_context": (1.0, 3.0)},
    ),
    Dataset(
        "grade",
        "grade",
        "coherence of responses in DailyDialog, ConvAI2 and EmpatheticDialogues",
        ("en",),
        "150 responses of each of eight systems",
        "none stated",
        "https://github.com/li3cmz/GRADE",
        {"coherence": (1.0, 5.0)},
    ),
    Dataset(
        "conture",
        "conture",
        "chats with eleven systems of DSTC9, every response rated 0, 1 or 2",
        ("en",),
        "119 dialogues, 1,066 responses",
        "CC BY 4.0",
        "https://github.com/alexa/conture",
        {"overall": (0.0, 2.0)},
    ),
)

DATASETS: Mapping[str, Dataset] = {dataset.name: dataset for dataset in _ALL}
"""Name -> corpus, in the order of ``mdialeval data list``."""


def describe(name: str) -> Dataset:
    """What is known about a corpus.

    Raises:
        ConfigError: no corpus of that name; the message names near matches.

    >>> describe("conture").scales["overall"]
    (0.0, 2.0)
    """
    if name not in DATASETS:
        raise ConfigError(f"unknown data set {name!r}: {nearest(name, DATASETS)}")
    return DATASETS[name]


def licence_of(reader: str) -> str:
    """The licences that the publishers of a reader's corpora state, or an empty text for a general format.

    >>> licence_of("xdial"), licence_of("dailydialogpp"), licence_of("jsonl")
    ('GPL-3.0', 'none stated', '')
    """
    return " / ".join(dict.fromkeys(entry.licence for entry in DATASETS.values() if entry.reader == reader))
