"""Metrics that call a judge. One function is one metric, and one module is one family.

May import :mod:`~otel_agenteval.core` and the registry. The judge is an argument, so metrics don't depend on providers,
queues or budgets. Start at ``quality_judges.py``.
"""
