"""How turns were read, by instrumentation scope: which framework deserves a dialect of its own, and which gives no turn at all."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterable

_MOST_SCOPES = 100
_OTHERS = "_other"
_log = logging.getLogger("otel_agenteval")


class Readings:
    """Counts of turns by scope and reading, and of traces that gave none. Thread-safe."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin anew: a forked child has read nothing yet."""
        self._lock = threading.Lock()
        self._scopes: set[str] = set()
        self.turns: Counter[tuple[str, str]] = Counter()
        """By scope and reading."""
        self.unread: Counter[str] = Counter()
        """By scope."""
        self.limited: Counter[str] = Counter()
        """Values that were out of bounds, by kind."""

    def note_limited(self, kinds: Iterable[str]) -> None:
        """Count values that were left out or cut because they were out of bounds."""
        with self._lock:
            self.limited.update(kinds)

    def note(self, reading: str | None, scope: str) -> None:
        """Count a turn."""
        with self._lock:
            self.turns[self._label(scope), reading or "exact"] += 1

    def note_unread(self, scope: str | None) -> None:
        """Count a trace without a turn; None for one that holds nothing of a model's."""
        if scope is None:
            return
        with self._lock:
            label = self._label(scope)
            self.unread[label] += 1
            first = self.unread[label] == 1
        if first:
            warn_unread(scope)

    def _label(self, scope: str) -> str:
        if scope in self._scopes or len(self._scopes) < _MOST_SCOPES:
            self._scopes.add(scope)
            return scope
        return _OTHERS


def warn_unread(scope: str) -> None:
    """Say that spans of a scope look like a model's work and give no turn."""
    _log.warning(
        "spans of the instrumentation scope %r hold what looks like a model's work, and no turn could be made of their trace; "
        "further traces of this scope are counted in agenteval.unread_traces",
        scope or "(none)",
    )
