"""Entry points that OpenTelemetry's startup code loads.

Until an entry point is used, only the standard library is imported. Setup errors are logged and never stop the agent.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

_log = logging.getLogger("otel_agenteval")


def post_instrument() -> None:
    """Attach evaluation when ``opentelemetry-instrument`` starts the program, if ``OTEL_AGENTEVAL_ENABLED`` is true."""
    wanted = os.environ.get("OTEL_AGENTEVAL_ENABLED", "").strip()
    if not wanted or any("multiprocessing.resource_tracker" in argument for argument in sys.orig_argv):
        return  # a helper process of multiprocessing runs no agent
    try:
        from ..config.types import truth_of

        is_on = truth_of(wanted)
        if is_on is None:
            _log.warning("OTEL_AGENTEVAL_ENABLED: must be true or false, got %r; otel-agenteval is not started", wanted)
        if not is_on:
            return
        from .attach import instrument

        instrument()
    except Exception as error:  # never prevent the agent from starting
        _log.warning("otel-agenteval is off: %s", error)


def completion_hook() -> Any:
    """Return the hook for ``OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK=agenteval``, or None if it can't be created."""
    try:
        from .span_processor import CompletionHook

        return CompletionHook()
    except Exception as error:
        _log.warning("otel-agenteval receives no content from the completion hook: %s", error)
        return None


def __getattr__(name: str) -> Any:
    """Import ``SafeExporter`` on first use, for ``OTEL_TRACES_EXPORTER=agenteval``."""
    if name == "SafeExporter":
        from .span_exporter import SafeExporter

        return SafeExporter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
