"""Deterministic metrics, which evaluate a turn without calling a model. One function is one metric, and one module is one family.

May import :mod:`~otel_agenteval.core`, :mod:`~otel_agenteval.detectors`, :mod:`~otel_agenteval.media`, the registry, and shared
helpers in :mod:`otel_agenteval.metrics.lib`. Start at ``answer.py``, and copy one of its functions.
"""
