"""Deterministic metrics: one function is one metric, one module one family. They take a turn and ask no model.

May import :mod:`~otel_agenteval.core` and the registry. Shared helpers are in :mod:`otel_agenteval.metrics.lib`.
Start at ``answer.py``, and copy one of its functions.
"""
