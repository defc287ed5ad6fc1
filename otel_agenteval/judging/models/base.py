"""Base classes of model clients, and records of their requests with tokens, costs, and errors."""

from __future__ import annotations

import datetime
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from ...core.contexts import setting
from ...core.price_table import Tokens
from ...core.prices import table_cost, table_name
from ...core.score import Exchange
from ...metrics.question import Answers, Question
from .providers import PROVIDERS
from .providers.base import TokenUsage


class Model:
    model: str = ""
    address: str = ""
    """URL of the model server. Empty for in-process models and for groups of judges."""
    ledger: AccountLedger

    @property
    def priced(self) -> bool:
        """True if the model's price is known. A dollar limit in the budget excludes models with an unknown price."""
        return True

    def accounts(self) -> list[Account]:
        """Return the records of the last 1,000 requests, oldest first. See also :func:`recording`."""
        return self.ledger.last()

    def total(self) -> Total:
        return self.ledger.total()

    def close(self) -> None:
        """Close connections and files. Safe to call twice. A later request reopens what it needs."""


class JudgeModel(Model, Answers):
    """Base class of judges, which score ``llm_`` metrics."""

    has_cache: bool = False
    """True if replies are cached, so that identical judge calls aren't sent again."""

    def cached(self, question: Question) -> dict[str, Any] | None:
        return None

    def server_of(self, metric: str, agent: str) -> str:
        """Return the address of the server for a metric and an agent, or ``""`` for the default server."""
        return ""


class EmbedderModel(Model, ABC):
    """Base class of embedders, which compute vectors for ``embed_`` metrics."""

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text. See :meth:`otel_agenteval.Embedder.embed`."""


# --- records of requests

T = TypeVar("T")
_KEPT = 1_000
Prices = Mapping[str, Mapping[str, float]]
"""Mapping from model name to USD per million tokens, with the keys ``input``, ``output``, and optionally ``cached_input``."""
_FIRST_LOOKUP = threading.Lock()  # one thread at a time looks up a new model, because the table is slow to load and search
_LOOKED_UP: set[tuple[str, str]] = set()  # models and base URLs that were looked up before


@dataclass(frozen=True, slots=True)
class Account:
    """Record of one model request and its retries. Unknown values are None. Only ``charge_usd`` and the tokens of an in-process
    embedder can be estimates.
    """

    stage: str
    """Name that the metric gives to the judge call, or ``embed`` for embeddings."""
    provider: str
    model: str
    attempts: int
    """Number of attempts to send the request. 0 if the call failed before, or if the model runs in this process."""
    duration_s: float
    """Duration in seconds, including waits for limits and retries."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Input tokens read from the server's cache, included in ``input_tokens``."""
    cost_usd: float | None = None
    price_source: str | None = None
    """Source of the price: ``prices`` (configured), ``local`` (in this process), or the price table's name and version."""
    charge_usd: float | None = None
    """Amount charged to the budget, in USD. If the server didn't report token counts, the amount is an estimate."""
    error_type: str | None = None
    repair: bool = False
    """True if the request asked the model to repair its reply."""


@dataclass(frozen=True, slots=True)
class Total:
    requests: int = 0
    failed: int = 0
    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    """Sum of the known costs, in USD."""
    unpriced: int = 0
    """Number of answered requests whose cost is unknown."""

    def plus(self, account: Account) -> Total:
        failed = account.error_type is not None
        return Total(
            self.requests + 1, self.failed + failed, self.attempts + account.attempts,
            self.input_tokens + (account.input_tokens or 0), self.output_tokens + (account.output_tokens or 0),
            self.cost_usd + (account.cost_usd or 0.0), self.unpriced + (account.cost_usd is None and not failed),
        )  # fmt: skip


@contextmanager
def _collecting(collectors: ContextVar[tuple[list[T], ...]]) -> Iterator[list[T]]:
    found: list[T] = []
    with setting(collectors, (*collectors.get(), found)):
        yield found


_RECORDERS: ContextVar[tuple[list[Account], ...]] = ContextVar("otel_agenteval_recorders", default=())


def recording() -> AbstractContextManager[list[Account]]:
    """Collect an :class:`Account` for each model request that the current thread or task sends within the block."""
    return _collecting(_RECORDERS)


_LISTENERS: ContextVar[tuple[list[Exchange], ...]] = ContextVar("otel_agenteval_listeners", default=())


def listening() -> AbstractContextManager[list[Exchange]]:
    """Collect prompts (with turn content) and replies of judge calls that the current thread or task makes within the block."""
    return _collecting(_LISTENERS)


def record_exchange(exchange: Exchange) -> None:
    for found in _LISTENERS.get():
        found.append(exchange)


_ADMIT: ContextVar[Callable[[], None]] = ContextVar("otel_agenteval_admit_repair", default=lambda: None)


def admitting_repairs(admit: Callable[[], None]) -> AbstractContextManager[None]:
    """Call ``admit`` before each repair request in the block. ``admit`` can raise a :class:`JudgeError` to prevent the request."""
    return setting(_ADMIT, admit)


def admit_repair() -> None:
    """Reserve budget for a repair request, or raise a :class:`JudgeError`. Does nothing without a budget."""
    _ADMIT.get()()


class AccountLedger:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: deque[Account] = deque(maxlen=_KEPT)
        self._total = Total()

    def add(self, account: Account) -> None:
        with self._lock:
            self._last.append(account)
            self._total = self._total.plus(account)
        for recorder in _RECORDERS.get():
            recorder.append(account)

    def last(self) -> list[Account]:
        with self._lock:
            return list(self._last)

    def total(self) -> Total:
        return self._total


def cost_of(model: str, base_url: str, usage: TokenUsage, prices: Prices) -> tuple[float | None, str | None]:
    """Return the cost in USD and the price's source. If the usage or the price is unknown, return ``(None, None)``. The built-in
    price table applies only if ``base_url`` is a known provider's address. Other servers need configured ``prices``.
    """
    if usage.input_tokens is None or usage.output_tokens is None:
        return None, None
    own = prices.get(model)
    if prices and not own:  # a price for openai/gpt-5 applies to gpt-5, and the reverse
        named = {name.partition("/")[2]: price for name, price in prices.items() if name.partition("/")[0] in PROVIDERS}
        own = named.get(model) or prices.get(model.partition("/")[2])
    if own is not None:
        cached = min(usage.cached_tokens or 0, usage.input_tokens)
        fresh = (usage.input_tokens - cached) * own["input"] + cached * own.get("cached_input", own["input"])
        return (fresh + usage.output_tokens * own["output"]) / 1_000_000, "prices"
    tokens = Tokens(usage.input_tokens, usage.output_tokens, usage.cached_tokens or 0)
    now = datetime.datetime.now(datetime.timezone.utc)
    with nullcontext() if (model, base_url) in _LOOKED_UP else _FIRST_LOOKUP:
        usd = table_cost(model, tokens, now, base_url=base_url)
        _LOOKED_UP.add((model, base_url))
    return (None, None) if usd is None else (usd, table_name())
