"""The closed vocabulary of relations between two nodes of a graph.

Paths of roles, as published systems use them, do not work as a vocabulary: most of them occur once.  Here a pair of
nodes is related by one role, forwards or inverse, or else only by its distance.
"""

from __future__ import annotations

import re

PAD, NONE, SELF = 0, 1, 2
"""Padding; no path between two nodes (nobody looks at either); a node and itself."""
NEAR, FAR = 3, 6
"""Distance 2, and distance 5 or more; 3 and 4 lie between."""

DIALOGUE_ROLES = ("turn", "top", "same")
"""Edges that join the graphs of a dialogue: root to turn, turn to the top of its AMR, equal concepts."""

ROLES = (
    *DIALOGUE_ROLES,
    *("ARG0", "ARG1", "ARG2", "ARG3", "ARG4", "ARG5"),
    *("accompanier", "age", "beneficiary", "cause", "concession", "condition", "consist", "cost", "date", "degree"),
    *("destination", "direction", "domain", "duration", "example", "extent", "frequency", "instrument", "li"),
    *("location", "manner", "medium", "mod", "mode", "name", "op", "ord", "part", "path", "polarity", "polite"),
    *("poss", "prep", "purpose", "quant", "range", "scale", "snt", "source", "subevent", "subset", "superset"),
    *("time", "topic", "unit", "value", "other"),
)
"""Roles after merging; each is a relation forwards and another one inverse."""

N_RELATIONS = FAR + 1 + 2 * len(ROLES)
_INDEX = {role: FAR + 1 + 2 * place for place, role in enumerate(ROLES)}
_NUMBERED = re.compile(r"(op|snt)\d+")
_DATES = frozenset(
    (
        *("calendar", "century", "day", "dayperiod", "decade", "era", "month", "quarter", "season", "timezone"),
        *("weekday", "year", "year2", "date-entity"),
    )
)


def relation(role: str) -> int:
    """The relation from an edge's source to its target; the inverse relation is the next number.

    >>> relation("op3") == relation("op12"), relation("prep-in") == relation("prep-on"), relation("ARG0")
    (True, True, 13)
    >>> ROLES[(relation("weekday") - FAR - 1) // 2], ROLES[(relation("conj-as-if") - FAR - 1) // 2]
    ('date', 'other')
    """
    if (match := _NUMBERED.fullmatch(role)) is not None:
        role = match[1]
    elif role in _DATES:
        role = "date"
    elif role.startswith("prep-"):
        role = "prep"
    return _INDEX.get(role, _INDEX["other"])
