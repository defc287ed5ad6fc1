"""Cache for parsed texts, and a weak map that compares keys by identity.

An agent sends the same instructions, tool definitions, and history with every model call, and several metrics parse the same text.
So :func:`remembered` caches a parser's results.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, TypeVar, cast

Result = TypeVar("Result")

MOST_CHARACTERS = 1_000_000
"""Maximum size of ``_recent`` and of ``_older``. Each result counts as its text's length, plus 100, plus 100 per contained item."""

_recent: dict[tuple[Callable[[str], Any], str], Any] = {}
_older: dict[tuple[Callable[[str], Any], str], Any] = {}
_size = 0
_MISSING = object()


def remembered(read: Callable[[str], Result], times: int = 1) -> Callable[[str], Result]:
    """Wrap the parser ``read`` to cache its results. All threads share the results, so results must be immutable. If the cache
    exceeds :data:`MOST_CHARACTERS`, the oldest results are dropped. A result larger than an eighth of this limit isn't cached. If
    results need much more memory than their texts, set ``times`` to count each text several times.
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
    """Cache a result. Because there is no lock, concurrent calls can lose a result, which is then recomputed."""
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
    """Map with weak keys, compared by identity because some telemetry providers aren't hashable. If a key doesn't support weak
    references, its value isn't stored. Not thread-safe.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref[Any], Value]] = {}

    def get(self, owner: object) -> Value | None:
        kept = self._kept.get(id(owner))
        return kept[1] if kept is not None and kept[0]() is owner else None

    def put(self, owner: object, value: Value) -> None:
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
