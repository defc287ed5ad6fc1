"""Evaluate turns: select their metrics, attach their references, and compute their scores.

Modules in this package may import :mod:`~otel_agenteval.metrics` and :mod:`~otel_agenteval.config`, but not OpenTelemetry. Read
:mod:`.selection` first: it creates metrics from a configuration.
"""
