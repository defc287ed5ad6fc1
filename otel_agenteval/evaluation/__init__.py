"""Evaluate turns: select their metrics, attach their references, and compute their scores.

Modules may import :mod:`~otel_agenteval.metrics` and :mod:`~otel_agenteval.config`, but not OpenTelemetry. Start at
:mod:`.selection`, which creates metrics from a configuration.
"""
