"""How requests to a model's server are made: what judges and embedders have in common."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypedDict

from ...core.clock import SYSTEM_CLOCK, Clock
from .prices import Prices

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """As :class:`otel_agenteval.Judge` and :class:`otel_agenteval.Embedder` take them as keywords. None is no limit."""

    headers: Mapping[str, str] | None = None
    """Sent with each request, beside the provider's."""
    timeout: float = 30.0
    """Seconds that one attempt may take, to the last byte."""
    deadline: float = 120.0
    """Seconds that one question may take, with retries, repair and waiting for its turn."""
    max_concurrency: int | None = None
    """Requests at once; more wait."""
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    """Of input and output, as estimated and then as counted by the server."""
    prices: Prices | None = None
    """By model, USD per million tokens."""
    clock: Clock = SYSTEM_CLOCK
    """For tests."""
    sleep: Callable[[float], None] = time.sleep
    """For tests."""

    @classmethod
    def of(cls, taker: str, keywords: RequestKeywords) -> Self:
        """Those that were given as keywords.

        Raises:
            TypeError: there is no such keyword; as if ``taker`` named them one by one.
        """
        for name in keywords.keys() - {field.name for field in fields(cls)}:
            raise TypeError(f"{taker}() got an unexpected keyword argument {name!r}")
        return cls(**keywords)


class RequestKeywords(TypedDict, total=False):
    """The same, for type checkers."""

    headers: Mapping[str, str] | None
    timeout: float
    deadline: float
    max_concurrency: int | None
    requests_per_minute: float | None
    tokens_per_minute: float | None
    prices: Prices | None
    clock: Clock
    sleep: Callable[[float], None]
