"""Options for requests to model servers, common to judges and embedders."""

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
    """Keyword arguments of judges and embedders. None means no limit."""

    headers: Mapping[str, str] | None = None
    timeout: float = 30.0
    """Maximum seconds for one attempt, up to the last byte."""
    deadline: float = 120.0
    """Maximum seconds for one judge call, including retries, repair and waiting."""
    max_concurrency: int | None = None
    """Maximum number of concurrent requests. Others wait."""
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    """Maximum rate of input and output tokens, estimated first and corrected by the server's count."""
    prices: Prices | None = None
    """Prices by model, in USD per million tokens."""
    clock: Clock = SYSTEM_CLOCK
    sleep: Callable[[float], None] = time.sleep

    @classmethod
    def of(cls, taker: str, keywords: RequestKeywords) -> Self:
        """Return options from keyword arguments, or raise a TypeError that names ``taker``."""
        for name in keywords.keys() - {field.name for field in fields(cls)}:
            raise TypeError(f"{taker}() got an unexpected keyword argument {name!r}")
        return cls(**keywords)


class RequestKeywords(TypedDict, total=False):
    headers: Mapping[str, str] | None
    timeout: float
    deadline: float
    max_concurrency: int | None
    requests_per_minute: float | None
    tokens_per_minute: float | None
    prices: Prices | None
    clock: Clock
    sleep: Callable[[float], None]
