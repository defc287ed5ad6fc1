"""Track the spending of privacy budgets per user, tenant or conversation in this process."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from dataclasses import dataclass

from ...core.turn import Turn

_MOST_SCOPES = 100_000
"""Maximum number of remembered scopes. The least recently used scope is dropped first."""
_MOST_TURNS = 100_000
"""Maximum number of remembered turns. The least recently used turn is dropped first."""


@dataclass(slots=True)
class _Charge:
    """The epsilon that one turn spent, and the epsilon spent in its scope before it."""

    scope: str
    before: float
    epsilon: float


class EpsilonLedger:
    """A sum of the epsilon that turns spend, per scope.

    A turn that is scored again, or a revision of it, is charged once and gets the same earlier spending.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent: OrderedDict[str, float] = OrderedDict()
        self._entries: OrderedDict[tuple[str, str], _Charge] = OrderedDict()
        self._nameless: weakref.WeakKeyDictionary[Turn, _Charge] = weakref.WeakKeyDictionary()

    def charge(self, scope: str, turn: Turn, epsilon: float) -> float:
        """Charge a turn's epsilon and return the epsilon spent in its scope before it."""
        with self._lock:
            entry = self._entry_of(scope, turn)
            if entry is None:
                entry = _Charge(scope, self._spent.get(scope, 0.0), 0.0)
            self._spent[scope] = max(0.0, self._spent.get(scope, 0.0) + epsilon - entry.epsilon)
            self._spent.move_to_end(scope)
            entry.epsilon = epsilon
            if turn.turn_id:
                self._entries[scope, turn.turn_id] = entry
                self._entries.move_to_end((scope, turn.turn_id))
            else:
                self._nameless[turn] = entry
            self._trim()
            return entry.before

    def _entry_of(self, scope: str, turn: Turn) -> _Charge | None:
        if not turn.turn_id:
            found = self._nameless.get(turn)
            return found if found is not None and found.scope == scope else None
        known = self._entries.get((scope, turn.turn_id))
        return known if known is not None or turn.supersedes is None else self._entries.get((scope, turn.supersedes))

    def _trim(self) -> None:
        while len(self._spent) > _MOST_SCOPES:
            self._spent.popitem(last=False)
        while len(self._entries) > _MOST_TURNS:
            self._entries.popitem(last=False)
