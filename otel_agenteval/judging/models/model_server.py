"""Client for one model server, with retries, limits, prices, and request records.

A request is sent up to three times after connection errors, timeouts, server errors (5xx except 501 and 505), and the statuses 408,
409, 424, and 498. After a rate limit (429), or a timeout while concurrency is reduced (:class:`RateLimits`), retries continue until
the deadline. If the account has no credit, a request isn't retried. Pauses are random, but at least as long as the server requests.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypedDict, TypeVar

from ...core import jsonio
from ...core.clock import SYSTEM_CLOCK, Clock
from ...core.errors import JudgeError, NotAnswered
from ...core.pacing import CircuitBreaker, TokenBucket, backoff
from ...media.access import ImageReference
from .base import Account, AccountLedger, Prices, cost_of
from .providers.base import HttpRequest, TokenUsage
from .providers.bedrock import Sign
from .transport import JsonTransport, object_in

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")
_ATTEMPTS = 3
_FAILURES_UNTIL_DOWN, _HOLD = 5, 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 8.0
_TOKENS_PER_IMAGE = 800
_CHARACTERS_PER_TOKEN = 4
_MOST_TOKENS = 10_000_000
_FREE = frozenset(("unreachable", "circuit_open", "rate_limited", "context_overflow"))
"""Error types of requests that the server didn't process and that are free. All types that start with ``http_`` are free, too."""


class RequestKeywords(TypedDict, total=False):
    """Keyword arguments that judges and embedders accept. See :class:`RequestOptions`."""

    headers: Mapping[str, str] | None
    timeout: float
    deadline: float
    max_concurrency: int | None
    requests_per_minute: float | None
    tokens_per_minute: float | None
    prices: Prices | None
    clock: Clock
    sleep: Callable[[float], None]


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """Options for requests to a server. A limit of None means unlimited."""

    headers: Mapping[str, str] | None = None
    timeout: float = 30.0
    """Maximum seconds from the start of an attempt to the last byte of the reply."""
    deadline: float = 120.0
    """Maximum seconds for one judge call, including retries, repair, and waiting."""
    max_concurrency: int | None = None
    """Maximum number of concurrent requests. Further requests wait."""
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    """Maximum input and output tokens per minute. The server's token count replaces the estimate for each request."""
    prices: Prices | None = None
    clock: Clock = SYSTEM_CLOCK
    sleep: Callable[[float], None] = time.sleep

    @classmethod
    def of(cls, function: str, keywords: RequestKeywords) -> Self:
        """Return options from ``keywords``. For an unknown keyword, raise a TypeError that names ``function``."""
        for name in keywords.keys() - {field.name for field in fields(cls)}:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        return cls(**keywords)


@dataclass(slots=True)
class _Sent:
    attempts: int = 0
    began: float = float("inf")
    """Monotonic time when the current attempt was sent, or infinity if it wasn't sent."""
    usage: TokenUsage = TokenUsage()  # noqa: RUF009 - it is never changed


class ModelServer:
    """Client for one server. Thread-safe. All models on the server share its connections, limits, and usage records. ``headers``
    are the provider's headers. ``largest_reply`` is the maximum size of a reply in bytes.
    """

    def __init__(
        self,
        provider: str,
        base_url: str,
        headers: Mapping[str, str],
        options: RequestOptions,
        *,
        largest_reply: int = 4 * 2**20,
        sign: Sign | None = None,
    ) -> None:
        self.provider = provider
        self.clock = options.clock
        self._sleep = options.sleep
        self._deadline = options.deadline
        self._prices = options.prices or {}
        self.transport = JsonTransport(
            base_url, headers, options.headers or {}, timeout=options.timeout, clock=self.clock, largest_reply=largest_reply, sign=sign,
        )  # fmt: skip
        self.base_url = self.transport.base_url
        self.ledger = AccountLedger()
        self._limits = RateLimits(options)
        self._breaker = CircuitBreaker(self.clock, _FAILURES_UNTIL_DOWN, _HOLD)
        self._last_failure = ""
        self._holds: dict[tuple[str, object], float] = {}
        """Monotonic end time of the pause that the server requested, by path and model."""

    def until(self) -> float:
        return self.clock.monotonic() + self._deadline

    def priced(self, model: str) -> bool:
        return cost_of(model, self.base_url, TokenUsage(1_000, 1_000), self._prices)[0] is not None

    def close(self) -> None:
        self.transport.close()

    def call(
        self,
        stage: str,
        model: str,
        request: HttpRequest,
        read: Callable[[dict[str, object]], tuple[T, TokenUsage]],
        *,
        until: float,
        estimate: TokenUsage,
        repair: bool = False,
    ) -> T:
        """Send a request with retries and return the result. Raises a JudgeError on failure.

        ``until`` is the monotonic deadline. ``read`` parses the reply into a result and token counts. ``estimate`` is the expected
        token usage. The request's :class:`.Account` records ``stage`` and ``repair``.
        """
        route = request.path, request.body.get("model")
        expected = (estimate.input_tokens or 0) + (estimate.output_tokens or 0)
        failures, sent = 0, _Sent()
        with self._recording(stage, model, estimate, sent, repair=repair):
            content = jsonio.dumps(request.body).encode()
            for attempt in itertools.count(1):
                self._wait_as_requested(route, until)
                try:
                    with self._unless_down(sent):
                        with self._limits.slot(expected, until):
                            sent.attempts, sent.began = attempt, self.clock.monotonic()
                            reply = self.transport.post(request.path, content, until)
                        body = object_in(reply, content, self.clock)
                    break
                except NotAnswered as error:
                    if error.transient and error.retry_after:
                        self._holds[route] = self.clock.monotonic() + error.retry_after
                    busy = error.error_type == "timeout" and self._limits.is_reduced
                    failures += error.status != 429 and not busy
                    pause = error.retry_after + backoff(attempt, _FIRST_PAUSE, _LONGEST_PAUSE)
                    too_late = self.clock.monotonic() + pause >= until
                    if not error.transient or failures == _ATTEMPTS or too_late or not self._breaker.is_closed:
                        raise
                self._sleep(pause)
            found, counted = read(body)
            sent.usage = _plausible(counted)
            if sent.usage.input_tokens is not None:
                self._limits.correct(expected, sent.usage.input_tokens + (sent.usage.output_tokens or 0))
        return found

    @contextmanager
    def _recording(self, stage: str, model: str, estimate: TokenUsage, sent: _Sent, *, repair: bool) -> Iterator[None]:
        started, error_type = self.clock.monotonic(), None
        try:
            yield
        except JudgeError as error:
            error_type = error.error_type
            raise
        finally:
            usage = sent.usage
            cost, source = cost_of(model, self.base_url, usage, self._prices)
            charge = cost
            if cost is None:  # 0 if the server didn't process the request, otherwise estimated from what is known
                charged = TokenUsage(0, 0)
                if sent.attempts and (error_type is None or not (error_type.startswith("http_") or error_type in _FREE)):
                    charged = TokenUsage(
                        estimate.input_tokens if usage.input_tokens is None else usage.input_tokens,
                        estimate.output_tokens if usage.output_tokens is None else usage.output_tokens,
                        usage.cached_tokens,
                    )
                charge = cost_of(model, self.base_url, charged, self._prices)[0]
            account = Account(
                stage, self.provider, model, sent.attempts, self.clock.monotonic() - started, usage.input_tokens, usage.output_tokens,
                usage.cached_tokens, cost, source, charge, error_type, repair,
            )  # fmt: skip
            self.ledger.add(account)

    def _wait_as_requested(self, route: tuple[str, object], until: float) -> None:
        now = self.clock.monotonic()
        left = self._holds.get(route, now) - now
        if left <= 0:
            return
        if now + left >= until:
            raise JudgeError(f"not called, because the server requested a pause of {left:.0f} s", "rate_limited", left)
        self._sleep(left + random.uniform(0, _FIRST_PAUSE))  # noqa: S311 - jitter

    @contextmanager
    def _unless_down(self, sent: _Sent) -> Iterator[None]:
        """Run the block as one attempt and record the outcome. If the server is known to be down, raise a JudgeError instead."""
        wait, probe = self._breaker.enter()
        if wait != 0:
            problem = f"{self.base_url} failed {self._breaker.failures} times in a row: {self._last_failure}"
            raise JudgeError(f"not called, because {problem}", "circuit_open")
        alive: bool | None = None
        sent.began = float("inf")
        try:
            yield
            alive = True
        except NotAnswered as error:
            alive = error.status is not None and (error.status < 500 or not error.transient)
            if error.error_type == "timeout" and not self._limits.slow_down(sent.began):
                alive = None
            self._last_failure = str(error)
            raise
        finally:
            self._breaker.leave(probe, alive, began=sent.began)


def _plausible(usage: TokenUsage) -> TokenUsage:
    sent, received = usage.input_tokens, usage.output_tokens
    if sent is not None and not 0 < sent <= _MOST_TOKENS:
        sent = None
    if received is not None and received > _MOST_TOKENS:
        received = None
    return usage if (sent, received) == (usage.input_tokens, usage.output_tokens) else TokenUsage(sent, received)


def tokens_in(texts: Sequence[str]) -> int:
    images = sum(isinstance(text, ImageReference) for text in texts)
    letters = sum(len(text) for text in texts if not isinstance(text, ImageReference))
    return letters // _CHARACTERS_PER_TOKEN + images * _TOKENS_PER_IMAGE


class RateLimits:
    """Limits on concurrent requests, and on requests and tokens per minute. Thread-safe.

    Many local model servers process one request at a time. Therefore, a timeout halves the number of concurrent requests, and each
    reply increases the number again, up to the configured maximum.
    """

    def __init__(self, options: RequestOptions) -> None:
        requests, tokens = options.requests_per_minute, options.tokens_per_minute
        self._clock, self._sleep = options.clock, options.sleep
        self._most = self._room = float("inf") if options.max_concurrency is None else options.max_concurrency
        """Configured and current maximum number of concurrent requests."""
        self._running = 0
        self._free = threading.Condition()
        self._slowed = float("-inf")
        """Monotonic time of the last reduction. A timeout of a request that began earlier doesn't reduce the concurrency again."""
        self._has_answered = False
        self._requests = None if requests is None else TokenBucket(requests / 60, self._clock.monotonic)
        self._tokens = None if tokens is None else TokenBucket(tokens / 60, self._clock.monotonic)

    @contextmanager
    def slot(self, tokens: int, until: float) -> Iterator[None]:
        """Hold a slot for one request during the block. If no slot is free before ``until``, raise a JudgeError."""
        self.enter(tokens, until)
        answered = False
        try:
            yield
            answered = True
        finally:
            self.leave(answered=answered)

    def enter(self, tokens: int, until: float) -> None:
        """Wait for the rate limit and a slot, which :meth:`leave` frees. If ``until`` is too early for both, raise a JudgeError."""
        wait = self._reserve(1, tokens)
        late = self._clock.monotonic() + wait > until
        if wait and not late:
            self._sleep(wait)
        with self._free:
            left = max(0.0, until - self._clock.monotonic())
            if not late and self._free.wait_for(lambda: self._running + 1 <= self._room, left):
                self._running += 1
                return
        self._reserve(-1, -tokens)
        raise JudgeError("rate or concurrency limit reached, and no call is possible before the deadline", "rate_limited")

    def leave(self, *, answered: bool = True) -> None:
        with self._free:
            self._running -= 1
            self._has_answered |= answered
            if answered and self._room < self._most:
                self._room = min(self._most, self._room + 1 / self._room)
            self._free.notify_all()

    def slow_down(self, began: float) -> bool:
        """Halve the allowed concurrency after a timeout. Return True if the timeout counts as a server failure.

        If the request began before the last reduction, the timeout doesn't halve the concurrency again. The timeout then counts as
        a server failure only if the server has never answered.
        """
        with self._free:
            news = began >= self._slowed
            if news:
                self._room, self._slowed = max(1, (self._running + 1) // 2), self._clock.monotonic()
            return news or not self._has_answered

    @property
    def is_reduced(self) -> bool:
        """True if the server has answered before, but timeouts have reduced the concurrency."""
        return self._has_answered and self._room < self._most

    def correct(self, estimated: int, used: int) -> None:
        if self._tokens is not None:
            self._tokens.take(used - estimated)

    def _reserve(self, requests: int, tokens: int) -> float:
        waits = [
            bucket.take(amount) for bucket, amount in ((self._requests, requests), (self._tokens, tokens)) if bucket is not None
        ]
        return max(waits, default=0.0)
