"""Values kept beside objects of the application, for as long as those live."""

from __future__ import annotations

import weakref
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class ByIdentity(Generic[Value]):
    """What belongs to this very object, whatever it equals: providers of other packages may compare by their fields, and then have no hash.

    An object is not kept alive. One that cannot be referred to weakly has no place here, and its value is forgotten at once. Not for
    several threads at a time.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref[Any], Value]] = {}

    def get(self, owner: object) -> Value | None:
        """What was put for the object; None if nothing was."""
        kept = self._kept.get(id(owner))
        return kept[1] if kept is not None and kept[0]() is owner else None

    def put(self, owner: object, value: Value) -> None:
        """Keep a value until the object is gone."""
        identity = id(owner)

        def forget(gone: weakref.ref[Any]) -> None:
            kept = self._kept.get(identity)
            if kept is not None and kept[0] is gone:  # else another object has this identity by now
                self._kept.pop(identity, None)

        try:
            self._kept[identity] = weakref.ref(owner, forget), value
        except TypeError:
            return

    def __len__(self) -> int:
        return len(self._kept)
