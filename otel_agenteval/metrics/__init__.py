"""Catalog of metrics: computed, judged, or compared by embeddings.

One function is one metric. To add a metric, write a function with a docstring in its family's module, and decorate it with
``@metric``. The generated ``catalog_index.json`` holds the declarations, so that a process doesn't import unused metrics.
May import :mod:`~otel_agenteval.core` and :mod:`~otel_agenteval.detectors`, and nothing of OpenTelemetry, because metrics only
receive turns. Start at :mod:`.registry`. :mod:`.bound_metric` evaluates a turn.
"""
