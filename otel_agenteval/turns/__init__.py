"""Build turns from spans: choose the spans of each turn, and detect when the turn ends.

This package may import :mod:`~otel_agenteval.evaluation`, :mod:`~otel_agenteval.dialects` and lower subpackages, but not
OpenTelemetry. Read :mod:`.assembler` first. It closes turns. Then read :mod:`.roots`, which chooses their spans.
"""
