"""Build turns from spans: choose their spans, detect their ends, and join their parts.

May import :mod:`~otel_agenteval.dialects` and :mod:`~otel_agenteval.spans`, but not OpenTelemetry. Start at
:mod:`.assembler`, which closes turns, then :mod:`.roots`, which chooses their spans.
"""
