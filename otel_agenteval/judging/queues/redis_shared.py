"""State that processes share through a Redis or Valkey server: judge spending and outages."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ...core import forks
from .base import SLOTS, Demand
from .base import Counter as Spending
from .redis_server import Script, Server, unreachable

_MOST_UNSENT, _AT_ONCE = 10_000, 100
"""Maximum number of corrections that wait for the server, and that are sent in one step."""
_WAIT_UNREACHED = 10.0
"""Seconds until a judge call is tried again if the budget couldn't be read."""
_READ_FOR = 0.5
"""Seconds for which a read outage state is reused."""
_spend, _correct, _spent = (Script("spent", name, SLOTS=SLOTS) for name in ("spend", "correct", "read_spent"))


class RedisSpendBook:
    """A :class:`~otel_agenteval.judging.queues.SpendBook` on a Redis or Valkey server, with atomic changes. If the server is
    unreachable, corrections wait in this process, and no model is called.
    """

    def __init__(self, url: str, name: str = "agenteval") -> None:
        self._server = Server(url)
        self._name = name
        self._forget()
        forks.in_child(self._forget)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._unsent: deque[tuple[Spending, float, float]] = deque(maxlen=_MOST_UNSENT)

    def spend(self, demands: Sequence[Demand], at: float) -> float:
        if not demands:
            return 0.0
        args = [
            text
            for demand in demands
            for text in (
                demand.counter.slot(at), demand.counter.window, repr(demand.amount), _number(demand.limit), _number(demand.below),
            )
        ]  # fmt: skip
        keys = [self._key(demand.counter) for demand in demands]
        try:
            self._pay()
            return float(self._server.call(_spend, keys, (repr(at), *args)))
        except Exception as error:
            if not unreachable(error):
                raise
            return _WAIT_UNREACHED

    def add(self, amounts: Sequence[tuple[Spending, float]], at: float) -> None:
        with self._lock:
            self._unsent.extend((counter, amount, at) for counter, amount in amounts)
        try:
            self._pay()
        except Exception as error:
            if not unreachable(error):
                raise

    def _pay(self) -> None:
        while self._unsent:
            with self._lock:
                some = [self._unsent.popleft() for _ in range(min(len(self._unsent), _AT_ONCE))]
            args = [text for counter, amount, at in some for text in (counter.slot(at), counter.window, repr(amount))]
            keys = [self._key(counter) for counter, _, _ in some]
            try:
                self._server.call(_correct, keys, args)
            except BaseException:
                with self._lock:
                    self._unsent.extendleft(reversed(some))
                raise

    def used(self, counter: Spending, at: float) -> float:
        return float(self._server.call(_spent, [self._key(counter)], (counter.slot(at) - SLOTS,)))

    def close(self) -> None:
        self._server.close()

    def _key(self, counter: Spending) -> str:
        return f"{{{self._name}:spent}}:{counter.unit}:{counter.window:g}:{counter.account}"


def _number(value: float) -> str:
    return "1e308" if value == float("inf") else repr(value)


class RedisOutages:
    """State of servers that are down, which all processes on a Redis server share."""

    def __init__(self, url: str, name: str = "agenteval") -> None:
        self._server = Server(url)
        self._name = name
        self._read: dict[str, tuple[float, float]] = {}

    def until(self, kind: str) -> float:
        at, found = self._read.get(kind, (-1.0, 0.0))
        if time.monotonic() - at > _READ_FOR:
            found = self._try(lambda client: float(client.get(self._key(kind)) or 0.0)) or 0.0
            self._read[kind] = time.monotonic(), found
        return found

    def report(self, kind: str, until: float, seconds: float) -> None:
        self._read.pop(kind, None)
        key = self._key(kind)
        if seconds > 0:
            self._try(lambda client: client.set(key, repr(until), px=max(1, round(seconds * 1000))))
        else:
            self._try(lambda client: client.delete(key))

    def close(self) -> None:
        self._server.close()

    def _try(self, call: Callable[[Any], Any]) -> Any:
        try:
            return self._server.call(call)
        except Exception as error:
            if not unreachable(error):
                raise
            return None

    def _key(self, kind: str) -> str:
        return f"{{{self._name}:outage}}:{kind}"
