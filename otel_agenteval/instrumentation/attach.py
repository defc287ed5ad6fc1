"""Attach evaluation to a tracer provider with ``instrument()``, or capture turns temporarily."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider

from ..config.loader import load_config
from ..config.root import Config
from ..core.caches import ByIdentity
from ..core.errors import ConfigError
from ..core.feedback import feedback_of, ids_of
from ..engine.builder import without_environment
from ..engine.engine import Engine, switched_on
from ..engine.feedback import TurnFeedback
from .span_processor import AgentEvalSpanProcessor, is_shut_down

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from ..evaluation.scored_turn import ScoredTurn

_log = logging.getLogger("otel_agenteval")
_lock = threading.Lock()
_handles: ByIdentity[Handle] = ByIdentity()
_Processor = TypeVar("_Processor", bound=SpanProcessor)


class Handle:
    """Handle for the evaluation that :func:`instrument` started, with methods for status, scores, and user feedback.

    If evaluation is off, all methods can still be called, but have no effect.
    """

    def __init__(self, processor: AgentEvalSpanProcessor | None) -> None:
        self._processor = processor

    @property
    def enabled(self) -> bool:
        """False if there is no SDK provider, or the environment turns evaluation off or contains an invalid configuration."""
        return self._processor is not None

    @property
    def processor(self) -> AgentEvalSpanProcessor | None:
        """The attached span processor, or None if evaluation is off."""
        return self._processor

    def flush(self, timeout: float = 30.0) -> bool:
        """Deliver the computed scores of all closed turns, within ``timeout`` seconds. Return False if any score isn't delivered."""
        return self._processor.engine.flush(timeout) if self._processor is not None else True

    def drain(self, judges: bool = True, timeout: float = 30.0) -> bool:
        """Wait until all closed turns are evaluated (including by judges) and their scores are delivered.

        Args:
            judges: False to return without waiting for judged metrics.
            timeout: maximum seconds to wait. If something remains, the method returns False.
        """
        if not isinstance(judges, bool):
            raise TypeError(f"drain(): judges must be True or False, got {judges!r}. To set a timeout, call drain(timeout=8)")
        return self._processor.engine.drain(timeout, judges=judges) if self._processor is not None else True

    def why(self, turn_id: str) -> dict[str, str] | None:
        """Return each metric's outcome on a recent turn.

        Examples of outcomes: ``scored``, ``skipped: …``, ``sampled out …``. Returns None if the turn isn't in memory.
        """
        return self._processor.engine.why(turn_id) if self._processor is not None else None

    def feedback(
        self,
        turn_id: Any,
        *,
        score: float | bool | None = None,
        label: str | None = None,
        comment: str | None = None,
        edited: str | None = None,
        scale: tuple[float, float] | None = None,
        id: str | None = None,  # noqa: A002 - the word that requests use too
        strict: bool = False,
    ) -> bool:
        """Record user feedback on a turn, even long after the turn ended.

        The feedback becomes the turn's ``code_user_feedback`` score, from 0 to 1. Returns False if evaluation is off, the queue is
        full, or a value is invalid. Invalid values are counted in ``agenteval_feedback_total``, and logged once per argument.

        Args:
            turn_id: any span in the turn as ``TRACE_ID-SPAN_ID``, a span context, or a ``traceparent``. A ``TRACE_ID`` alone means
                the trace's last turn.
            score: a number within the scale, or a bool.
            label: a word such as ``thumbs_up``, ``dislike``, or ``👎``. If ``score`` and ``edited`` are missing, it sets the score.
            comment: free text, which is redacted and exported as the score's explanation.
            edited: the answer as corrected by the user. If ``score`` is missing, the score is 0.
            scale: the worst and the best score, such as ``(1, 5)``. The default is ``(0, 1)``.
            id: ID of the feedback. If the same feedback is delivered again, outlets count it once.
            strict: True to raise an exception for an invalid value. Useful in tests.

        Raises:
            ValueError: If ``strict`` is True, and a value is invalid or the rating is missing.
        """
        try:
            trace_id, span_id = ids_of(turn_id)
            given = feedback_of(
                score=score, label=label, comment=comment, edited=edited, scale=scale, id=id, seed=str(time.time_ns())
            )
        except ConfigError as error:
            if strict:
                raise ValueError(str(error)) from None
            if self._processor is not None:
                self._processor.engine.pipeline.feedback.refuse(error)
            return False
        if self._processor is None:
            return False
        return self._processor.engine.intake.receive_feedback(TurnFeedback(given, trace_id, span_id))

    def end_conversation(self, conversation_id: str) -> bool:
        """End a conversation now, instead of after ``conversation.idle_timeout``.

        The conversation is then evaluated with ``conversation.metrics``. A later turn reopens the conversation. Returns False if
        no conversation with this ID is open.
        """
        return self._processor.engine.end_conversation(conversation_id) if self._processor is not None else False

    def shutdown(self) -> None:
        """Evaluate open turns, deliver all scores, and stop.

        The span processor stays attached to the provider, but is inactive. Another :func:`instrument` call starts a new evaluation.
        """
        if self._processor is not None:
            self._processor.shutdown()


def turn_id() -> str | None:
    """Return the current span as ``TRACE_ID-SPAN_ID`` (see :meth:`Handle.feedback`), or None if no span is current.

    Send this ID along with the agent's answer, so that your application can return it with the user's rating.
    """
    context = trace.get_current_span().get_span_context()
    return f"{context.trace_id:032x}-{context.span_id:016x}" if context.is_valid else None


def instrument(
    *,
    tracer_provider: Any = None,
    logger_provider: Any = None,
    meter_provider: Any = None,
    config: Config | Mapping[str, Any] | str | None = None,
    prometheus_port: int | None = None,
    create_provider: bool = False,
) -> Handle:
    """Evaluate the turns of all agents whose spans pass through a tracer provider.

    Call this function once, after the provider is set. Another call for the same provider returns the same handle, and ignores a
    different configuration with a warning. After :meth:`Handle.shutdown`, a call starts a new evaluation.

    The function adds a span processor to the tracer provider, and a log processor to the SDK logger provider, if there is one. The
    function doesn't set global providers, unless ``create_provider=True`` and there is no TracerProvider.

    Args:
        tracer_provider: SDK provider to attach to. The default is the global provider.
        logger_provider: provider for reading messages in log records and writing log events. The default is the global provider.
        meter_provider: provider for exporting OTLP metrics if ``outlets.otlp_metrics`` is on. The default is the global provider.
        config: a :class:`Config`, a mapping with the same keys, or a YAML file's path (default: ``OTEL_AGENTEVAL_CONFIG_FILE``).
            ``OTEL_AGENTEVAL_…`` variables override the file. A mapping overrides both, and a Config replaces both.
        prometheus_port: serve ``/metrics`` on this loopback port, instead of adding metrics to the default Prometheus registry.
        create_provider: True to create a global TracerProvider if there is no SDK TracerProvider. For quickstarts and demos.

    Raises:
        ConfigError: If the configuration is invalid. An error in environment variables, or in the file that they name, is only
            logged, and scoring is off, unless the configuration sets ``strict: true``.
    """
    if not switched_on():
        return Handle(None)
    provider = tracer_provider if tracer_provider is not None else trace.get_tracer_provider()
    if not hasattr(provider, "add_span_processor"):
        if not create_provider:
            warn_no_provider()
            return Handle(None)
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    with _lock:
        known = _handles.get(provider)
        if known is not None and known.processor is not None and known.processor.engine.closed:
            known = None
        if known is None and (processor := _attached_to(provider, AgentEvalSpanProcessor)) is not None:
            known = Handle(processor)  # for a span processor that the application added itself
        overrides = {"outlets": {"prometheus": {"port": prometheus_port}}} if prometheus_port is not None else None
        if known is None:
            try:
                loaded = load_config(config, overrides=overrides)
                attached = AgentEvalSpanProcessor(loaded, logger_provider=logger_provider, meter_provider=meter_provider)
            except ConfigError as error:
                without_environment(config, error, overrides)
                return Handle(None)
            provider.add_span_processor(attached)
            _read_logs(logger_provider, attached)
            known = Handle(attached)
        elif not (config is None and overrides is None) and not _runs_with(known, config, overrides):
            _log.warning("instrument(): this provider is already instrumented, so the new configuration is ignored")
        _handles.put(provider, known)
    return known


def _read_logs(logger_provider: Any, processor: AgentEvalSpanProcessor) -> None:
    if logger_provider is None:
        from opentelemetry import _logs

        logger_provider = _logs.get_logger_provider()
    if hasattr(logger_provider, "add_log_record_processor"):
        from .log_processor import AgentEvalLogProcessor  # imports the SDK's logs, which a program without them doesn't need

        logger_provider.add_log_record_processor(AgentEvalLogProcessor(processor))


def _runs_with(known: Handle, config: Any, overrides: dict[str, Any] | None) -> bool:
    try:
        return known.processor is not None and load_config(config, overrides=overrides) == known.processor.engine.config
    except ConfigError:
        return False


def _attached_to(provider: Any, kind: type[_Processor]) -> _Processor | None:
    siblings = getattr(getattr(provider, "_active_span_processor", None), "_span_processors", ())
    return next((sibling for sibling in siblings if isinstance(sibling, kind) and not is_shut_down(sibling)), None)


@functools.cache
def warn_no_provider() -> None:
    _log.warning(
        "instrument(): no SDK TracerProvider found, so no turns are evaluated. Call instrument() after "
        "opentelemetry.trace.set_tracer_provider(...), or pass tracer_provider=..., or create_provider=True for a quickstart. "
        "If you start with opentelemetry-instrument, run: pip install opentelemetry-distro"
    )


CONFIG = {
    "inline": {"metrics": []},
    "outlets": {"span_events": "off", "log_events": False, "prometheus": None},
    "turn": {"stitch_timeout": 0},
}
"""Configuration that rebuilds turns without scoring. The code that captures turns scores the captured turns itself."""
_FLUSH_SECONDS = 60.0


class _Capture(SpanProcessor):
    """Span processor for captures. :func:`instrument` ignores this processor, so the application can be instrumented later."""

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
    """Capture the turns that close inside the ``with`` block. The yielded deque is complete after the block. Without an SDK
    provider, a global SDK provider is set. If the application is already instrumented, its own evaluation isn't affected.
    Otherwise, it can be instrumented later with any configuration. Raise ConfigError if the environment turns evaluation off.
    """
    if not switched_on():
        raise ConfigError(
            "OTEL_SDK_DISABLED or OTEL_AGENTEVAL_ENABLED turns evaluation off, so turns can't be captured. Unset the variable"
        )
    with _lock:
        provider = tracer_provider if tracer_provider is not None else trace.get_tracer_provider()
        if not hasattr(provider, "add_span_processor"):
            provider = TracerProvider()
            trace.set_tracer_provider(provider)
        processor, capture = _attached_to(provider, AgentEvalSpanProcessor), None
        if processor is None:
            capture = _attached_to(provider, _Capture)
            if capture is None:
                capture = _Capture()
                provider.add_span_processor(capture)
                _read_logs(None, capture.inner)
            capture.users += 1
            processor = capture.inner
    try:
        with kept_turns(processor.engine, _FLUSH_SECONDS) as kept:
            yield kept
    finally:
        if capture is not None:
            with _lock:
                capture.users -= 1


@contextmanager
def kept_turns(engine: Engine, seconds: float) -> Iterator[deque[ScoredTurn]]:
    """Collect the turns that close inside the ``with`` block. Before and after the block, wait up to ``seconds`` for queued turns."""
    engine.flush(seconds)
    kept: deque[ScoredTurn] = deque()
    outlet = engine.keep_turns(kept)
    try:
        yield kept
    finally:
        engine.flush(seconds)
        engine.outlets.remove(outlet)
