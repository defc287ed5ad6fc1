"""A mapping from objects to values that doesn't keep the objects alive."""

from __future__ import annotations

import weakref
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class ByIdentity(Generic[Value]):
    """Maps objects to values by identity, because telemetry providers can define equality and then aren't hashable. References
    are weak. A value for an object that can't be weakly referenced is discarded. Not thread-safe.
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
