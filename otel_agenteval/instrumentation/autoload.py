"""Entry points for the startup code of other programs.

Only the standard library is imported before first use, and no exception escapes.
"""

from __future__ import annotations

import logging
import os
from typing import Any

_log = logging.getLogger("otel_agenteval")


def post_instrument() -> None:
    """Attach without code changes if ``OTEL_AGENTEVAL_ENABLED=true`` (entry point ``opentelemetry_post_instrument``)."""
    wanted = os.environ.get("OTEL_AGENTEVAL_ENABLED", "").strip()
    if not wanted:
        return
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
    """Return the hook that receives content that isn't on spans (``agenteval`` in ``opentelemetry_genai_completion_hook``)."""
    try:
        from .span_processor import CompletionHook

        return CompletionHook()
    except Exception as error:
        _log.warning("otel-agenteval receives no content from the completion hook: %s", error)
        return None


def __getattr__(name: str) -> Any:
    """Import the class behind the entry point ``opentelemetry_traces_exporter`` on first use."""
    if name == "SafeExporter":
        from .span_exporter import SafeExporter

        return SafeExporter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
