"""Catalog of metrics: computed, judged, or based on embeddings.

One function is one metric. To add a metric, write a function with a docstring in its family's module, and decorate it with
``@metric``. The generated ``catalog_index.json`` lists the built-in metrics, so that a process imports only the modules it uses.
This package may import :mod:`~otel_agenteval.core`, :mod:`~otel_agenteval.detectors` and :mod:`~otel_agenteval.media`, but not
OpenTelemetry, because metrics only receive turns. Start at :mod:`.registry`. :mod:`.bound_metric` evaluates a turn.
"""
