"""Entry points for start-up code of others. Imports only the standard library until used, and swallows every exception."""

from __future__ import annotations

import logging
import os
from typing import Any

_log = logging.getLogger("otel_agenteval")


def post_instrument() -> None:
    """``opentelemetry_post_instrument``: attach without a line of code, when ``OTEL_AGENTEVAL_ENABLED=true``."""
    wanted = os.environ.get("OTEL_AGENTEVAL_ENABLED", "").strip()
    if wanted.lower() != "true":
        if wanted.lower() not in ("", "false"):
            _log.warning("OTEL_AGENTEVAL_ENABLED: %r is neither true nor false: otel-agenteval is not started by it", wanted)
        return
    try:
        from .attach import instrument

        instrument()
    except Exception as error:  # start-up of the agent comes first
        _log.warning("otel-agenteval is off: %s", error)


def completion_hook() -> Any:
    """``opentelemetry_genai_completion_hook`` named ``agenteval``: content reaches us even when it is put on no span."""
    try:
        from .completion_hook import CompletionHook

        return CompletionHook()
    except Exception as error:
        _log.warning("otel-agenteval gets no content from the completion hook: %s", error)
        return None


def __getattr__(name: str) -> Any:
    """``opentelemetry_traces_exporter`` named ``agenteval`` resolves to a class that is imported only then."""
    if name == "SafeExporter":
        from .span_exporter import SafeExporter

        return SafeExporter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
