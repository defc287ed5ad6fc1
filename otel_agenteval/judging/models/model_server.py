"""One server that is asked: its transport, and the account of every request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ...core.errors import JudgeError
from ...media.types import ImageReference
from .accounts import Account, Ledger
from .prices import cost_of
from .providers import Request, Usage
from .request_options import RequestOptions
from .transport import Transport

T = TypeVar("T")
_TOKENS_PER_IMAGE = 800
_CHARACTERS_PER_TOKEN = 4
_MOST_TOKENS = 10_000_000
_FREE = frozenset(("unreachable", "circuit_open", "rate_limited", "context_overflow"))


class ModelServer:
    """Sends requests, and notes what each took. Thread-safe.

    Args:
        provider: for the accounts.
        transport: sends them.
        options: how requests are made.
    """

    def __init__(self, provider: str, transport: Transport, options: RequestOptions) -> None:
        self.provider = provider
        self.transport = transport
        self.ledger = Ledger()
        self._deadline = options.deadline
        self._prices = options.prices or {}

    def until(self) -> float:
        """The deadline of a question that begins now, in seconds of the monotonic clock."""
        return self.transport.clock.monotonic() + self._deadline

    def priced(self, model: str) -> bool:
        """Whether the price of a model is known."""
        return cost_of(model, self.transport.base_url, Usage(1_000, 1_000), self._prices)[0] is not None

    def call(
        self,
        stage: str,
        model: str,
        request: Request,
        read: Callable[[dict[str, object]], tuple[T, Usage]],
        *,
        until: float,
        estimate: Usage,
        repair: bool = False,
    ) -> T:
        """What ``read`` makes of the answer to a request.

        Args:
            stage: what it is for.
            model: the model that is asked.
            request: what is sent.
            read: gives what is wanted, and what it took.
            until: when to give up.
            estimate: tokens that it will take.
            repair: for the account.

        Raises:
            JudgeError: there was no answer, or it could not be read.
        """
        clock, limits = self.transport.clock, self.transport.limits
        started, attempts = clock.monotonic(), 0
        expected = (estimate.input_tokens or 0) + (estimate.output_tokens or 0)
        usage, error_type = Usage(), None

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
            taken = _taken(usage, estimate) if attempts and _may_be_billed(error_type) else Usage(0, 0)
            charge = (
                cost if cost is not None or taken == usage else cost_of(model, self.transport.base_url, taken, self._prices)[0]
            )
            account = Account(
                stage, self.provider, model, attempts, clock.monotonic() - started, usage.input_tokens, usage.output_tokens,
                usage.cached_tokens, cost, source, charge, (taken.input_tokens or 0) + (taken.output_tokens or 0), error_type, repair,
            )  # fmt: skip
            self.ledger.add(account)


def _plausible(usage: Usage) -> Usage:
    """What a server counted, without what cannot be: nothing taken in, or more than any model can."""
    given, said = usage.input_tokens, usage.output_tokens
    if given is not None and not 0 < given <= _MOST_TOKENS:
        given = None
    if said is not None and said > _MOST_TOKENS:
        said = None
    return usage if (given, said) == (usage.input_tokens, usage.output_tokens) else Usage(given, said)


def _taken(usage: Usage, estimate: Usage) -> Usage:
    given = estimate.input_tokens if usage.input_tokens is None else usage.input_tokens
    said = estimate.output_tokens if usage.output_tokens is None else usage.output_tokens
    return Usage(given, said, usage.cached_tokens)


def _may_be_billed(error_type: str | None) -> bool:
    """Whether the server may have done the work: it did not if it refused, or could not be reached."""
    return error_type is None or not (error_type.startswith("http_") or error_type in _FREE)


def tokens_in(texts: Sequence[str]) -> int:
    """A rough number of tokens, for the rate only."""
    images = sum(isinstance(text, ImageReference) for text in texts)
    letters = sum(len(text) for text in texts if not isinstance(text, ImageReference))
    return letters // _CHARACTERS_PER_TOKEN + images * _TOKENS_PER_IMAGE
