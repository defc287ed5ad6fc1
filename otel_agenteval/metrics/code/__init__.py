"""Metrics that evaluate a turn without calling a model. Each function is a metric, and each module is a family of metrics.

These modules may import :mod:`~otel_agenteval.core`, :mod:`~otel_agenteval.detectors`, :mod:`~otel_agenteval.media`, the
registry, and shared helpers in :mod:`otel_agenteval.metrics.lib`. To write a metric, copy a function in ``answer.py``.
"""
