"""From configured metrics and a turn to scores: which metrics run on which turn, with which references, within which budget.

May import :mod:`~otel_agenteval.metrics` and :mod:`~otel_agenteval.config`; nothing of OpenTelemetry.
Start at :mod:`.selection`, which turns a configuration into metrics.
"""
