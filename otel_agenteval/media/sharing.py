"""Share opened and measured media between the metrics of a turn, and drop them afterwards."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")
_SHARED: ContextVar[dict[Hashable, Any] | None] = ContextVar("otel_agenteval_shared_media", default=None)


@contextmanager
def sharing() -> Iterator[None]:
    """Keep the media that this thread or task opens and measures in the block."""
    token = _SHARED.set({})
    try:
        yield
    finally:
        _SHARED.reset(token)


def is_shared() -> bool:
    """Return True if other metrics may use the same media."""
    return _SHARED.get() is not None


def shared(key: Hashable, make: Callable[[], T]) -> T:
    """Return the value kept under a key in this block, or create it."""
    kept = _SHARED.get()
    if kept is None:
        return make()
    if key not in kept:
        kept[key] = make()
    found: T = kept[key]
    return found
