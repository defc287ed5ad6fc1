"""Build turns from spans: choose the spans of each turn, detect its end, and join its parts.

This package may import :mod:`~otel_agenteval.evaluation`, :mod:`~otel_agenteval.dialects` and lower subpackages, but not
OpenTelemetry. Start at :mod:`.assembler`, which closes turns, then :mod:`.roots`, which chooses their spans.
"""
