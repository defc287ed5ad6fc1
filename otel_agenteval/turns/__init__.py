"""Build turns from spans: choose their spans, detect their ends, and join their parts.

May import :mod:`~otel_agenteval.dialects` and :mod:`~otel_agenteval.spans`, but not OpenTelemetry. Start with
:mod:`.assembler` (closes turns), then :mod:`.roots` (chooses their spans).
"""
