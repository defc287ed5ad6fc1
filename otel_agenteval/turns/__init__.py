"""Build turns from spans: choose each turn's spans, detect its end, and join its parts.

May import :mod:`~otel_agenteval.dialects` and :mod:`~otel_agenteval.spans`, but not OpenTelemetry. Start at
:mod:`.assembler`, which closes turns, then :mod:`.roots`, which chooses their spans.
"""
