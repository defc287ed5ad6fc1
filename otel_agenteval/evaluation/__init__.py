"""Evaluation of turns: metric selection, references, and scores.

Modules in this package may import :mod:`~otel_agenteval.metrics` and :mod:`~otel_agenteval.config`, but not OpenTelemetry. Start
reading at :mod:`.selection`, which creates metrics from a configuration.
"""
