"""Build turns from spans: choose the spans of each turn, and detect when the turn ends.

Modules in this package may import :mod:`~otel_agenteval.evaluation`, :mod:`~otel_agenteval.dialects`, and lower subpackages, but
not OpenTelemetry. First read :mod:`.assembler`, which closes turns, and then :mod:`.roots`, which chooses each turn's spans.
"""
