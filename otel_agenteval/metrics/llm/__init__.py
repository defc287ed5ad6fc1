"""Metrics that call a judge. One function is one metric, and one module is one family.

This package may import :mod:`~otel_agenteval.core`, :mod:`~otel_agenteval.media`, the registry, and shared code in ``metrics``.
The judge is an argument, so metrics don't depend on providers, queues or budgets. Start at ``quality_judges.py``.
"""
