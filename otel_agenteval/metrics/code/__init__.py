"""Deterministic metrics, which take a turn and call no model.
One function is one metric, and one module is one family.

May import :mod:`~otel_agenteval.core`, :mod:`~otel_agenteval.detectors` and the registry. Shared helpers are in :mod:`otel_agenteval.metrics.lib`.
Start at ``answer.py``, and copy one of its functions.
"""
