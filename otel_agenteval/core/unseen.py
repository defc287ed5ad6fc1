"""Hides the package's own requests from instrumentations, which would record them as turns of the host."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def unseen() -> Iterator[None]:
    """Hide the enclosed work from instrumentations of HTTP clients and from span processors."""
    from opentelemetry import context

    token = context.attach(context.Context({**context.get_current(), **_hidden()}))
    try:
        yield
    finally:
        context.detach(token)


@functools.cache
def _hidden() -> Mapping[str, object]:
    from opentelemetry import context

    keys = [getattr(context, key, key) for key in ("_SUPPRESS_INSTRUMENTATION_KEY", "_SUPPRESS_HTTP_INSTRUMENTATION_KEY")]
    return dict.fromkeys((*keys, "suppress_instrumentation"), True)  # the last is the key of older instrumentations
