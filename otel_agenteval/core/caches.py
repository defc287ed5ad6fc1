"""Caches for parsed texts, and for values by object identity.

An agent sends its instructions, tool definitions and history again with every model call, and several metrics read the same
text. A function behind :func:`remembered` parses each of these texts once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, TypeVar, cast

Result = TypeVar("Result")

MOST_CHARACTERS = 1_000_000
"""Maximum total length of the texts in each of the two generations. Each item of a result counts as 100 characters."""

_recent: dict[tuple[Callable[[str], Any], str], Any] = {}
_older: dict[tuple[Callable[[str], Any], str], Any] = {}
_size = 0
_MISSING = object()


def remembered(read: Callable[[str], Result], times: int = 1) -> Callable[[str], Result]:
    """Cache the latest results of a function of one text. All threads share the results, so they must be immutable. If the texts
    exceed :data:`MOST_CHARACTERS`, the oldest results are dropped. A text longer than an eighth of the limit isn't cached. If a
    result takes much more memory than its text, set ``times``: the text then counts that many times.
    """

    @wraps(read)
    def known(text: str) -> Result:
        key = (read, text)
        found: Any = _recent.get(key, _MISSING)
        if found is _MISSING:
            found = _older.get(key, _MISSING)
            if found is _MISSING:
                found = read(text)
            _store(key, found, times)
        return cast("Result", found)

    return known


def forget() -> None:
    global _older, _recent, _size
    _recent, _older, _size = {}, {}, 0


def _store(key: tuple[Callable[[str], Any], str], found: object, times: int) -> None:
    """Cache a result. If several threads do this at the same time, a result can be missing from the cache."""
    global _older, _recent, _size
    length = times * len(key[1]) + 100 * (1 + (len(found) if isinstance(found, (tuple, frozenset, dict)) else 0))
    if length > MOST_CHARACTERS // 8:
        return
    if _size + length > MOST_CHARACTERS:
        _recent, _older, _size = {}, _recent, 0
    _recent[key] = found
    _size += length


Value = TypeVar("Value")


class ByIdentity(Generic[Value]):
    """Map from objects to values by identity, because telemetry providers can define equality and then aren't hashable.
    References are weak. A value for an object that can't be weakly referenced is discarded. Not thread-safe.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref[Any], Value]] = {}

    def get(self, owner: object) -> Value | None:
        kept = self._kept.get(id(owner))
        return kept[1] if kept is not None and kept[0]() is owner else None

    def put(self, owner: object, value: Value) -> None:
        """Store a value until the object is garbage-collected."""
        identity = id(owner)

        def forget(gone: weakref.ref[Any]) -> None:
            kept = self._kept.get(identity)
            if kept is not None and kept[0] is gone:  # the id may already belong to a new object
                self._kept.pop(identity, None)

        try:
            self._kept[identity] = weakref.ref(owner, forget), value
        except TypeError:
            return

    def __len__(self) -> int:
        return len(self._kept)
