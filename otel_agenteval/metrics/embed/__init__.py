"""Metrics that compare texts by their embeddings. The embedder is an argument.

May import :mod:`~otel_agenteval.core` and the registry. Allowed third-party package: numpy.
Start at ``embeddings.py``.
"""
