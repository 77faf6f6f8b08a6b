"""The word tables of ``lexicon.toml``, by name, and the frame of a verb."""

from __future__ import annotations

import re
import tomllib
from importlib import resources

_TEXT = tomllib.loads(resources.files(__package__).joinpath("lexicon.toml").read_text(encoding="utf-8"))


def _set(name: str) -> frozenset[str]:
    return frozenset(_TEXT["sets"][name].split())


def _table(name: str) -> dict[str, str]:
    """``go-02 rule:rule-03`` as word -> value; without a colon the word is the value without its sense."""
    pairs = (
        entry.rpartition(":") if ":" in entry else (re.sub(r"-\d+$", "", entry), "", entry)
        for entry in _TEXT["tables"][name].split()
    )
    return {word: value for word, _, value in pairs}


VERBS = _table("verbs")
PHRASAL = _table("phrasal")
ADJECTIVES = _table("adjectives")
ADJECTIVE_SUBJECT = _table("adjective_subject")
NOUNS = _table("nouns")
AGENTS = _table("agents")
PRONOUNS = _table("pronouns")
MONTHS = _table("months")
UNITS = _table("units")
CURRENCIES = _table("currencies")
PLACE_ENTITIES = _table("place_entities")
ENTITY_TYPES = _table("entity_types")
NATIONALITIES = _table("nationalities")
GREETINGS = _table("greetings")
VERB_PREPOSITIONS = _table("verb_prepositions")
PREPOSITIONS = _table("prepositions")
PHRASES = _table("phrases")
CONJUNCTIONS = _table("conjunctions")
COMPARATIVES = _table("comparatives")
NEGATIVE_VERBS = _table("negative_verbs")
MODAL = {verb: tuple(value.split("/")) for verb, value in _table("modal").items()}
TITLES = _set("titles")
GIVING = _set("giving")
THINKING = _set("thinking")
MATERIALS = _set("materials")
MOTION = _set("motion")
OBJECT_CONTROL = _set("object_control")
LIGHT_VERBS = _set("light_verbs")
UNACCUSATIVE = _set("unaccusative")
RAISING = _set("raising")
HEARER = _set("hearer")
SAYING = _set("saying")
REPLYING = _set("replying")
NEGATIVE_ADJECTIVES = _set("negative_adjectives")
RESULT_NOUNS = _set("result_nouns")
UNDERGONE = _set("undergone")
INDEFINITE = _set("indefinite")
WH_PERSON = _set("wh_person")
WH = _set("wh")
NEGATIONS = _set("negations")
FREQUENCY = _set("frequency")
TIME_ADVERBS = _set("time_adverbs")
DEGREE = _set("degree")
FOCUS = _set("focus")
PLACES = _set("places")
DIRECTIONS = _set("directions")
TEMPORAL = _set("temporal")
DAYPERIODS = _set("dayperiods")
WEEKDAYS = _set("weekdays")
KIN = _set("kin")
OFFICES = _set("offices")
BODY = _set("body")
CONTAINERS = _set("containers")
GROUPS = _set("groups")
SORTS = _set("sorts")
INTERJECTIONS = _set("interjections")
ANSWERS = _set("answers")
PREPOSITION_NODES = _set("preposition_nodes")
INSTRUMENTS = _set("instruments")
MANNERS = _set("manners")
MEANS = _set("means")
PEOPLE = _set("people")
TIGHT_PARTICLES = _set("tight_particles")
NEGATIVE_PREFIXED = _set("negative_prefixed")


def verb_frame(lemma: str, particle: str = "") -> str:
    """The frame of a verb.

    >>> verb_frame("go"), verb_frame("jump"), verb_frame("wake", "up"), verb_frame("jump", "off")
    ('go-02', 'jump-01', 'wake-up-02', 'jump-off-01')
    """
    if particle:
        return PHRASAL.get(f"{lemma}_{particle}", f"{lemma}-{particle}-01")
    return VERBS.get(lemma, f"{lemma}-01")
