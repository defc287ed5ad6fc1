"""What was asked, what it took and what it cost."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ...core.exchange import Exchange

_KEPT = 1_000


@dataclass(frozen=True, slots=True)
class Account:
    """One request, with its retries. What is not known is None: nothing is estimated but what budgets are charged with."""

    stage: str
    """What was asked for, in the metric's words; ``embed`` for embeddings."""
    provider: str
    model: str
    attempts: int
    """HTTP requests that were sent; 0 if none was."""
    duration_s: float
    """Seconds, with all waiting."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Input tokens that the server had in its cache; part of ``input_tokens``."""
    cost_usd: float | None = None
    price_source: str | None = None
    """Where the price is from: ``prices`` (configured) or the table's name and version."""
    charge_usd: float | None = None
    """What a budget must reckon with: the cost, or its estimate where the model's price is known and what it took is not."""
    charge_tokens: int = 0
    """The same in tokens."""
    error_type: str | None = None
    """Why there is no answer."""
    repair: bool = False
    """Whether it asked for a reply again that could not be read."""


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of all accounts since the start."""

    requests: int = 0
    failed: int = 0
    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    """Of those whose cost is known."""
    unpriced: int = 0
    """Answers whose cost is not known."""

    def plus(self, account: Account) -> Total:
        """With one more."""
        failed = account.error_type is not None
        return Total(
            self.requests + 1, self.failed + failed, self.attempts + account.attempts,
            self.input_tokens + (account.input_tokens or 0), self.output_tokens + (account.output_tokens or 0),
            self.cost_usd + (account.cost_usd or 0.0), self.unpriced + (account.cost_usd is None and not failed),
        )  # fmt: skip


_RECORDERS: ContextVar[tuple[list[Account], ...]] = ContextVar("otel_agenteval_recorders", default=())


@contextmanager
def recording() -> Iterator[list[Account]]:
    """Collect the accounts of all that is asked inside, by any judge or embedder, in this thread or task."""
    found: list[Account] = []
    token = _RECORDERS.set((*_RECORDERS.get(), found))
    try:
        yield found
    finally:
        _RECORDERS.reset(token)


_LISTENERS: ContextVar[tuple[list[Exchange], ...]] = ContextVar("otel_agenteval_listeners", default=())


@contextmanager
def listening() -> Iterator[list[Exchange]]:
    """Collect what is said between metrics and judges inside, in this thread or task. It is content."""
    found: list[Exchange] = []
    token = _LISTENERS.set((*_LISTENERS.get(), found))
    try:
        yield found
    finally:
        _LISTENERS.reset(token)


def note(exchange: Exchange) -> None:
    """To be called with each question that was sent."""
    for found in _LISTENERS.get():
        found.append(exchange)


_ADMIT: ContextVar[Callable[[], None]] = ContextVar("otel_agenteval_admit_repair", default=lambda: None)


@contextmanager
def admitting_repairs(admit: Callable[[], None]) -> Iterator[None]:
    """Inside, in this thread or task, ``admit`` is called before a reply that could not be read is asked for again.

    Args:
        admit: raises a :class:`JudgeError` where that may not be.
    """
    token = _ADMIT.set(admit)
    try:
        yield
    finally:
        _ADMIT.reset(token)


def admit_repair() -> None:
    """To be called before a reply is asked for again.

    Raises:
        JudgeError: it may not be.
    """
    _ADMIT.get()()


class Ledger:
    """The last accounts, and the sum of all. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: deque[Account] = deque(maxlen=_KEPT)
        self._total = Total()

    def add(self, account: Account) -> None:
        """Note an account, also for those that record."""
        with self._lock:
            self._last.append(account)
            self._total = self._total.plus(account)
        for recorder in _RECORDERS.get():
            recorder.append(account)

    def last(self) -> list[Account]:
        """The last thousand accounts, oldest first."""
        with self._lock:
            return list(self._last)

    def total(self) -> Total:
        """The sum of all accounts."""
        return self._total
