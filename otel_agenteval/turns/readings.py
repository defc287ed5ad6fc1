"""Count how turns were read, by instrumentation scope.

The counts show which frameworks need their own dialect, and which traces produce no turn.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterable

_MOST_SCOPES = 100
_OTHERS = "_other"
_log = logging.getLogger("otel_agenteval")


class Readings:
    """Counts of turns by scope and reading, and of traces without a turn. Thread-safe."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Reset all counts. A forked child hasn't read any turns."""
        self._lock = threading.Lock()
        self._scopes: set[str] = set()
        self.turns: Counter[tuple[str, str]] = Counter()
        self.unread: Counter[str] = Counter()
        self.limited: Counter[str] = Counter()

    def note_limited(self, kinds: Iterable[str]) -> None:
        with self._lock:
            self.limited.update(kinds)

    def note(self, reading: str | None, scope: str) -> None:
        with self._lock:
            self.turns[self._label(scope), reading or "exact"] += 1

    def note_unread(self, scope: str | None) -> None:
        """Count a trace without a turn. ``scope`` is None if nothing in the trace seems to be GenAI."""
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
    _log.warning(
        "otel-agenteval can't build a turn from a trace with spans of the instrumentation scope %r, although they look like GenAI spans; "
        "further traces of this scope are counted in agenteval.unread_traces",
        scope or "(none)",
    )
