"""Metrics that call a judge. Each decorated function is a metric, and each module contains one metric family.

Modules in this package may import :mod:`~otel_agenteval.core`, :mod:`~otel_agenteval.media`, the registry, and shared code in
``metrics``. The judge is an argument, so metrics don't depend on providers or budgets. Start reading at ``quality_judges.py``.
"""
