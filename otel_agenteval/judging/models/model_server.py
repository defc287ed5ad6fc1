"""Client of one model server that records every request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ...core.errors import JudgeError
from ...media.types import ImageReference
from .accounts import Account, AccountLedger
from .prices import cost_of
from .providers.base import HttpRequest, TokenUsage
from .request_options import RequestOptions
from .transport import JsonTransport

T = TypeVar("T")
_TOKENS_PER_IMAGE = 800
_CHARACTERS_PER_TOKEN = 4
_MOST_TOKENS = 10_000_000
_FREE = frozenset(("unreachable", "circuit_open", "rate_limited", "context_overflow"))


class ModelServer:
    """Sender of requests to one server, with their accounts. Thread-safe."""

    def __init__(self, provider: str, transport: JsonTransport, options: RequestOptions) -> None:
        self.provider = provider
        self.transport = transport
        self.ledger = AccountLedger()
        self._deadline = options.deadline
        self._prices = options.prices or {}

    def until(self) -> float:
        return self.transport.clock.monotonic() + self._deadline

    def priced(self, model: str) -> bool:
        return cost_of(model, self.transport.base_url, TokenUsage(1_000, 1_000), self._prices)[0] is not None

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
        """Send a request and return the result of ``read``, which also returns the usage. Raises a JudgeError. ``stage`` and
        ``repair`` are for the accounts. ``estimate`` has the expected tokens.
        """
        clock, limits = self.transport.clock, self.transport.limits
        started, attempts = clock.monotonic(), 0
        expected = (estimate.input_tokens or 0) + (estimate.output_tokens or 0)
        usage, error_type = TokenUsage(), None

        def tried() -> None:
            nonlocal attempts
            attempts += 1

        try:
            answer = self.transport.post(request.path, request.body, until=until, tokens=expected, tried=tried)
            found, counted = read(answer)
            usage = _plausible(counted)
            if usage.input_tokens is not None:
                limits.correct(expected, usage.input_tokens + (usage.output_tokens or 0))
            return found
        except JudgeError as error:
            error_type = error.error_type
            raise
        finally:
            cost, source = cost_of(model, self.transport.base_url, usage, self._prices)
            taken = _taken(usage, estimate) if attempts and _may_be_billed(error_type) else TokenUsage(0, 0)
            charge = (
                cost if cost is not None or taken == usage else cost_of(model, self.transport.base_url, taken, self._prices)[0]
            )
            account = Account(
                stage, self.provider, model, attempts, clock.monotonic() - started, usage.input_tokens, usage.output_tokens,
                usage.cached_tokens, cost, source, charge, (taken.input_tokens or 0) + (taken.output_tokens or 0), error_type, repair,
            )  # fmt: skip
            self.ledger.add(account)


def _plausible(usage: TokenUsage) -> TokenUsage:
    """Return the usage without zero input tokens or more tokens than any model supports."""
    given, written = usage.input_tokens, usage.output_tokens
    if given is not None and not 0 < given <= _MOST_TOKENS:
        given = None
    if written is not None and written > _MOST_TOKENS:
        written = None
    return usage if (given, written) == (usage.input_tokens, usage.output_tokens) else TokenUsage(given, written)


def _taken(usage: TokenUsage, estimate: TokenUsage) -> TokenUsage:
    given = estimate.input_tokens if usage.input_tokens is None else usage.input_tokens
    written = estimate.output_tokens if usage.output_tokens is None else usage.output_tokens
    return TokenUsage(given, written, usage.cached_tokens)


def _may_be_billed(error_type: str | None) -> bool:
    """Return True if the server may have processed the request, instead of rejecting it."""
    return error_type is None or not (error_type.startswith("http_") or error_type in _FREE)


def tokens_in(texts: Sequence[str]) -> int:
    """Return a rough number of tokens, for rate limits only."""
    images = sum(isinstance(text, ImageReference) for text in texts)
    letters = sum(len(text) for text in texts if not isinstance(text, ImageReference))
    return letters // _CHARACTERS_PER_TOKEN + images * _TOKENS_PER_IMAGE
