"""Metrics that ask a judge: one function is one metric, one module one family; each prompt is inside its function.

May import :mod:`~otel_agenteval.core` and the registry. The judge is an argument: no metric knows providers, queues or budgets.
Start at ``quality_judges.py``.
"""
