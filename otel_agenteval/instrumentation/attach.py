"""The one line: attach to the tracer provider that the application already has."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import Any

from ..config.loader import load_config
from ..config.root import Config
from ..core.errors import ConfigError
from ..core.feedback import feedback_of, ids_of
from ..core.identity import ByIdentity
from ..engine.engine import switched_on
from ..engine.feedback import Given
from .log_processor import AgentEvalLogProcessor
from .span_processor import AgentEvalSpanProcessor

_log = logging.getLogger("otel_agenteval")
_lock = threading.Lock()
_handles: ByIdentity[Handle] = ByIdentity()
_warned = False


class Handle:
    """What :func:`instrument` returns. Every method is safe on a handle that is switched off."""

    def __init__(self, processor: AgentEvalSpanProcessor | None) -> None:
        self._processor = processor

    @property
    def enabled(self) -> bool:
        """False when the environment switched us off, or there is no SDK provider to attach to."""
        return self._processor is not None

    @property
    def processor(self) -> AgentEvalSpanProcessor | None:
        """The span processor that was attached."""
        return self._processor

    def flush(self, timeout: float = 30.0) -> bool:
        """Deliver the scores of all turns that are closed, within ``timeout`` seconds. False unless that was all done."""
        return self._processor.engine.flush(timeout) if self._processor is not None else True

    def drain(self, judges: bool = True, timeout: float = 30.0) -> bool:
        """Wait until everything that was begun is finished, judged metrics too unless ``judges`` is false. False past ``timeout``."""
        return self._processor.engine.drain(timeout, judges=judges) if self._processor is not None else True

    def why(self, turn_id: str) -> dict[str, str] | None:
        """For each metric, what became of it on a recent turn (``scored``, ``skipped: …``, ``sampled out …``); None if it is not remembered."""
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
    ) -> bool:
        """What a user said of a turn, whenever that is. It becomes a score of ``code_user_feedback`` of the turn, from 0 to 1.

        Args:
            turn_id: ``TRACE_ID-SPAN_ID`` of the turn's root or any span of it, its span context or ``traceparent``, or ``TRACE_ID`` for the last turn
                of a trace.
            score: a number of the scale, or true or false.
            label: a word: ``thumbs_up``, ``dislike``, ``👎``, … It stands for the score where there is none.
            comment: what was said; it leaves as the score's explanation, redacted.
            edited: the answer as the user would have had it. Without a score it counts as 0.
            scale: the worst and the best score, ``(1, 5)``; by default 0 to 1.
            id: the same for the same feedback, which counts once in every outlet then.

        Returns False when nothing takes it: scoring is switched off, or the queue is full.

        Raises:
            ConfigError: the id is none, a value is not allowed, or it says neither good nor bad.
        """
        trace_id, span_id = ids_of(turn_id)
        given = feedback_of(
            score=score, label=label, comment=comment, edited=edited, scale=scale, id=id, seed=str(time.time_ns())
        )
        if self._processor is None:
            return False
        return self._processor.engine.receive_feedback(Given(given, trace_id, span_id))

    def end_conversation(self, conversation_id: str) -> bool:
        """Say that a conversation is over, instead of waiting until it was silent for ``conversation.idle_timeout``.

        Its metrics (``conversation.metrics``) are evaluated on all of its turns; later turns resume it. False when no such
        conversation is held.
        """
        return self._processor.engine.end_conversation(conversation_id) if self._processor is not None else False

    def shutdown(self) -> None:
        """Evaluate what is open, deliver everything, and stop. The processor stays attached and does nothing more."""
        if self._processor is not None:
            self._processor.shutdown()


def instrument(
    *,
    tracer_provider: Any = None,
    logger_provider: Any = None,
    meter_provider: Any = None,
    config: Config | Mapping[str, Any] | str | None = None,
    prometheus_port: int | None = None,
    create_provider: bool = False,
) -> Handle:
    """Score the turns of every agent whose spans go through the tracer provider.

    Call it once, after the provider is set; further calls for the same provider return the same handle, and warn when they
    bring another configuration, which is not used. It attaches a span
    processor (and to an SDK logger provider a log processor, for content in log records), and sets no global provider,
    except a TracerProvider when ``create_provider`` is true and there is none.

    Args:
        tracer_provider: the SDK provider to attach to (default: the global one).
        logger_provider: where log events go and content in log records comes from (default: the global one).
        meter_provider: where OTLP metrics go when ``outlets.otlp_metrics`` is on (default: the global one).
        config: a :class:`Config`, a mapping of the same form, or a path to a YAML file. Default: ``OTEL_AGENTEVAL_CONFIG_FILE``
            and ``OTEL_AGENTEVAL_…`` variables.
        prometheus_port: serve ``/metrics`` on this loopback port, instead of joining the application's default registry.
        create_provider: create and set an SDK TracerProvider when there is none (quick starts, demos).

    Raises:
        ConfigError: the configuration is not valid.
    """
    if not switched_on():
        return Handle(None)
    from opentelemetry import trace

    provider = tracer_provider if tracer_provider is not None else trace.get_tracer_provider()
    if not hasattr(provider, "add_span_processor"):
        if not create_provider:
            _warn_no_provider()
            return Handle(None)
        from opentelemetry.sdk.trace import TracerProvider

        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    with _lock:
        known = _handles.get(provider) or already_attached(provider)
        overrides = {"outlets": {"prometheus": {"port": prometheus_port}}} if prometheus_port is not None else None
        if known is None:
            known = _attach(provider, logger_provider, meter_provider, load_config(config, overrides=overrides))
        elif not (config is None and overrides is None) and not _runs_with(known, config, overrides):
            _log.warning("instrument(): this provider's turns are scored already; the configuration given now is not used")
        _handles.put(provider, known)
    return known


def _attach(provider: Any, logger_provider: Any, meter_provider: Any, config: Config) -> Handle:
    processor = AgentEvalSpanProcessor(config, logger_provider=logger_provider, meter_provider=meter_provider)
    provider.add_span_processor(processor)
    if logger_provider is None:
        from opentelemetry import _logs

        logger_provider = _logs.get_logger_provider()
    if hasattr(logger_provider, "add_log_record_processor"):
        logger_provider.add_log_record_processor(AgentEvalLogProcessor(processor))
    return Handle(processor)


def _runs_with(known: Handle, config: Any, overrides: dict[str, Any] | None) -> bool:
    """Whether a configuration is the one that is in use."""
    try:
        return known.processor is not None and load_config(config, overrides=overrides) == known.processor.engine.config
    except ConfigError:
        return False


def already_attached(provider: Any) -> Handle | None:
    """Our span processor, if the application added one itself."""
    siblings = getattr(getattr(provider, "_active_span_processor", None), "_span_processors", ())
    found = next((sibling for sibling in siblings if isinstance(sibling, AgentEvalSpanProcessor)), None)
    return Handle(found) if found is not None else None


def _warn_no_provider() -> None:
    global _warned
    if not _warned:
        _warned = True
        _log.warning(
            "instrument(): there is no SDK TracerProvider yet, so nothing is evaluated. Call it after "
            "opentelemetry.trace.set_tracer_provider(...), or pass tracer_provider=, or create_provider=True for a quick start."
        )
