"""Groups: items that share a context belong to one dialogue, so that no split puts them on both sides."""

from __future__ import annotations

from collections.abc import Hashable


class Groups:
    """Names a group for each distinct key, in order of first appearance.

    >>> groups = Groups("grade")
    >>> [groups.of(key) for key in ("hello", "bye", "hello")]
    ['grade-c0', 'grade-c1', 'grade-c0']
    """

    def __init__(self, prefix: str) -> None:
        self._prefix, self._known = prefix, dict[Hashable, int]()

    def of(self, key: Hashable) -> str:
        """The group of a key."""
        return f"{self._prefix}-c{self._known.setdefault(key, len(self._known))}"
