"""One server that is asked: its transport, and the account of every request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ..errors import JudgeError
from .accounts import Account, Ledger
from .prices import Prices, cost_of
from .providers import Request, Usage
from .transport import Transport

T = TypeVar("T")
_CHARACTERS_PER_TOKEN = 4


class Service:
    """Sends requests, and notes what each took. Thread-safe."""

    def __init__(self, provider: str, transport: Transport, deadline: float, prices: Prices | None) -> None:
        self.provider = provider
        self.transport = transport
        self.ledger = Ledger()
        self._deadline = deadline
        self._prices = prices or {}

    def until(self) -> float:
        """The deadline of a question that begins now, in seconds of the monotonic clock."""
        return self.transport.clock.monotonic() + self._deadline

    def call(
        self,
        stage: str,
        model: str,
        request: Request,
        read: Callable[[dict[str, object]], tuple[T, Usage]],
        *,
        until: float,
        estimate: int,
        repair: bool = False,
    ) -> T:
        """What ``read`` makes of the answer to a request.

        Args:
            stage: what it is for.
            model: who is asked.
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
        usage, error_type = Usage(), None

        def tried() -> None:
            nonlocal attempts
            attempts += 1

        try:
            answer = self.transport.post(request.path, request.body, until=until, tokens=estimate, tried=tried)
            found, usage = read(answer)
            if usage.input_tokens is not None:
                limits.settle(estimate, usage.input_tokens + (usage.output_tokens or 0))
            return found
        except JudgeError as error:
            error_type = error.error_type
            raise
        finally:
            cost, source = cost_of(model, self.transport.base_url, usage, self._prices)
            account = Account(
                stage, self.provider, model, attempts, clock.monotonic() - started, usage.input_tokens, usage.output_tokens,
                usage.cached_tokens, cost, source, error_type, repair,
            )  # fmt: skip
            self.ledger.add(account)


def tokens_in(texts: Sequence[str]) -> int:
    """A rough number of tokens, for the rate only."""
    return sum(map(len, texts)) // _CHARACTERS_PER_TOKEN
