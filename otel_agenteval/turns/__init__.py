"""From spans to turns: which spans make one, when it is over, and how parts of it find each other.

May import :mod:`~otel_agenteval.dialects` and :mod:`~otel_agenteval.spans`; nothing of OpenTelemetry.
Start at :mod:`.assembler` (when a turn is over), then :mod:`.roots` (which spans make one).
"""
