"""What several metrics want of one medium is opened and measured once, and dropped with the last of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")
_SHARED: ContextVar[dict[Hashable, Any] | None] = ContextVar("otel_agenteval_shared_media", default=None)


@contextmanager
def sharing() -> Iterator[None]:
    """While the block runs, this thread or task keeps what it opened and measured of media."""
    token = _SHARED.set({})
    try:
        yield
    finally:
        _SHARED.reset(token)


def is_shared() -> bool:
    """Whether other metrics may want the same."""
    return _SHARED.get() is not None


def shared(key: Hashable, make: Callable[[], T]) -> T:
    """What was made under a key within this block, else what is made now. What raises is made anew."""
    kept = _SHARED.get()
    if kept is None:
        return make()
    if key not in kept:
        kept[key] = make()
    found: T = kept[key]
    return found
