"""Evaluate turns: select metrics, attach references, and compute scores.

Modules in this package may import :mod:`~otel_agenteval.metrics` and :mod:`~otel_agenteval.config`, but not OpenTelemetry. Start
reading at :mod:`.selection`, which creates the metrics that a configuration selects.
"""
