"""Rate-limited log of refused requests.

It helps to find a sender, and no sender can fill a disk with it.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

from ..core.clock import Clock
from .logformat import caller
from .responses import Refused

_log = logging.getLogger("otel_agenteval")

EVERY = 10.0
"""Seconds between log lines about refusals of one kind and transport."""


@dataclass(slots=True)
class _Kind:
    until: float
    """Time of the next allowed line."""
    unsaid: int = 0


class RefusalLog:
    """Log of at most one refusal per kind and transport in :data:`EVERY` seconds.

    A line contains the number of suppressed lines, and nothing from the request's body.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kinds: dict[tuple[str, str], _Kind] = {}

    def note(self, transport: str, signal: str, refusal: Refused) -> None:
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
            f" ({unsaid} more since the last line of this kind)" if unsaid else "",
        )  # fmt: skip
