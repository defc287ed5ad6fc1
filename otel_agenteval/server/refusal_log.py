"""Refused requests in the log: enough to find the sender, never so much that a sender could fill a disk."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

from ..core.clock import Clock
from .logformat import caller
from .responses import Refused

_log = logging.getLogger("otel_agenteval")

EVERY = 10.0
"""Seconds between two lines about refusals of one kind in one transport."""


@dataclass(slots=True)
class _Kind:
    until: float
    """When the next line may be written."""
    unsaid: int = 0


class RefusalLog:
    """Logs at most one refusal per kind and transport in :data:`EVERY` seconds, with the number of those that it left out.

    A line has the request's id, its client's address, and the message of the response, which holds nothing of what was sent.

    Args:
        clock: injected by tests.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kinds: dict[tuple[str, str], _Kind] = {}

    def note(self, transport: str, signal: str, refusal: Refused) -> None:
        """A request was refused."""
        now = self._clock.monotonic()
        with self._lock:
            kind = self._kinds.setdefault((transport, refusal.kind), _Kind(now))
            if now < kind.until:
                kind.unsaid += 1
                return
            unsaid, kind.unsaid, kind.until = kind.unsaid, 0, now + EVERY
        request = caller.get()
        _log.log(
            logging.INFO if refusal.kind == "stopping" else logging.WARNING,
            "refused %s %s from %s: %s: %s%s",
            transport, signal, request.client if request is not None else "?", refusal.kind, refusal.message,
            f" ({unsaid} more since the last such line)" if unsaid else "",
        )  # fmt: skip
