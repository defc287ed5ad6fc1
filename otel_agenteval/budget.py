"""What judges may take within an hour: asked before each question, told after it."""

from __future__ import annotations

import threading
from collections import deque

from .clock import Clock
from .errors import JudgeError

WINDOW = 3600.0
"""Seconds."""


class Budget:
    """US dollars and questions within any hour. Thread-safe.

    Questions are counted before they are asked, so their bound always holds. A cost is known only afterwards: what is under
    way when the bound is met can go past it.

    Args:
        usd: bound of the cost; None is without.
        calls: bound of the number of questions; None is without.
        clock: moves the hour.
    """

    def __init__(self, usd: float | None, calls: int | None, clock: Clock) -> None:
        self._usd = usd
        self._calls = calls
        self._clock = clock
        self._lock = threading.Lock()
        self._spent: deque[tuple[float, float]] = deque()
        """(when, USD), oldest first."""
        self._sum = 0.0
        self._asked: deque[float] = deque()
        self._unpriced: set[str] = set()

    def admit(self, model: str) -> float:
        """Take a question to a model; 0 if there is room for it, else the seconds until there may be.

        Raises:
            JudgeError: dollars are bounded, and nobody knows the price of this model.
        """
        with self._lock:
            if model in self._unpriced:
                raise JudgeError(
                    f"not asked: judge.budget.usd_per_hour is set and the price of {model} is not known (judge.prices)",
                    "unpriced",
                )
            now = self._forget()
            wait = 0.0
            if self._usd is not None and self._sum >= self._usd:
                wait = self._spent[0][0] + WINDOW - now if self._spent else WINDOW
            if self._calls is not None and len(self._asked) >= self._calls:
                wait = max(wait, self._asked[0] + WINDOW - now)
            if wait == 0.0 and self._calls is not None:
                self._asked.append(now)
            return wait

    def spend(self, usd: float | None, model: str) -> None:
        """What an answer cost; None when its price is not known, after which it is not asked where dollars are bounded."""
        if self._usd is None:
            return
        with self._lock:
            if usd is None:
                self._unpriced.add(model)
            elif usd > 0:
                self._spent.append((self._clock.monotonic(), usd))
                self._sum += usd

    def remaining_usd(self) -> float | None:
        """US dollars that are left of this hour, at least 0; None without a bound."""
        with self._lock:
            self._forget()
            return None if self._usd is None else max(0.0, self._usd - self._sum)

    def remaining_calls(self) -> int | None:
        """Questions that are left of this hour; None without a bound."""
        with self._lock:
            self._forget()
            return None if self._calls is None else self._calls - len(self._asked)

    def after_fork_in_child(self) -> None:
        """A lock of its own; what the parent spent in this hour still counts."""
        self._lock = threading.Lock()

    def _forget(self) -> float:
        """Drop what is older than an hour; the present time."""
        now = self._clock.monotonic()
        before = len(self._spent)
        while self._spent and self._spent[0][0] <= now - WINDOW:
            self._spent.popleft()
        if len(self._spent) < before:  # summed anew: differences of fractions would add up
            self._sum = sum(usd for _, usd in self._spent)
        while self._asked and self._asked[0] <= now - WINDOW:
            self._asked.popleft()
        return now
