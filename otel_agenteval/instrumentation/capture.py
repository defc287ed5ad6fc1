"""Captures the turns of a provider temporarily, without scoring its later turns."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opentelemetry import _logs, trace
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider

from ..core.errors import ConfigError
from ..engine.engine import switched_on
from .attach import already_attached
from .log_processor import AgentEvalLogProcessor
from .span_processor import AgentEvalSpanProcessor

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from ..evaluation.scored_turn import ScoredTurn

CONFIG = {
    "inline": {"metrics": []},
    "outlets": {"span_events": "off", "log_events": False, "prometheus": None},
    "turn": {"stitch_timeout": 0},
}
"""Only rebuilds turns. The code that captures them also scores them."""
_FLUSH_SECONDS = 60.0
_lock = threading.Lock()


class _Capture(SpanProcessor):
    """A span processor for one capture. :func:`~.attach.instrument` doesn't count it as the application's own."""

    def __init__(self) -> None:
        self.inner = AgentEvalSpanProcessor(CONFIG)
        self.users = 0

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        if self.users:
            self.inner.on_start(span, parent_context)

    def _on_ending(self, span: Any) -> None:
        if self.users:
            self.inner._on_ending(span)

    def on_end(self, span: ReadableSpan) -> None:
        if self.users:
            self.inner.on_end(span)

    def shutdown(self) -> None:
        self.inner.shutdown()


@contextmanager
def captured_turns(tracer_provider: Any = None) -> Iterator[deque[ScoredTurn]]:
    """Capture the turns that close inside the ``with`` block. Afterwards, the list is complete. An instrumented application
    continues unchanged. Other applications can still be instrumented afterwards, with any configuration. Raises ConfigError if
    the environment turns evaluation off.
    """
    if not switched_on():
        raise ConfigError(
            "OTEL_SDK_DISABLED or OTEL_AGENTEVAL_ENABLED turns evaluation off, so turns can't be captured. Unset it"
        )
    with _lock:
        provider = _provider(tracer_provider)
        known = already_attached(provider)
        capture = None if known is not None else _capture_of(provider)
        processor = known.processor if known is not None else None
        if capture is not None:
            capture.users += 1
            processor = capture.inner
    assert processor is not None
    engine = processor.engine
    engine.flush(_FLUSH_SECONDS)
    kept: deque[ScoredTurn] = deque()
    outlet = engine.keep_turns(kept)
    try:
        yield kept
    finally:
        engine.flush(_FLUSH_SECONDS)
        engine.outlets.remove(outlet)
        if capture is not None:
            with _lock:
                capture.users -= 1


def _provider(given: Any) -> Any:
    found = trace.get_tracer_provider() if given is None else given
    if not hasattr(found, "add_span_processor"):
        found = TracerProvider()
        trace.set_tracer_provider(found)
    return found


def _capture_of(provider: Any) -> _Capture:
    siblings = getattr(getattr(provider, "_active_span_processor", None), "_span_processors", ())
    found = next((sibling for sibling in siblings if isinstance(sibling, _Capture)), None)
    if found is None:
        found = _Capture()
        provider.add_span_processor(found)
        logger_provider = _logs.get_logger_provider()
        if hasattr(logger_provider, "add_log_record_processor"):
            logger_provider.add_log_record_processor(AgentEvalLogProcessor(found.inner))
    return found
