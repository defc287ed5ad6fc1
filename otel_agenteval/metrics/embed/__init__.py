"""Metrics that compare texts or images by their embeddings. The embedder is an argument.

May import :mod:`~otel_agenteval.core`, :mod:`~otel_agenteval.media`, the registry, ``metrics.lib`` and numpy. Start at
``embeddings.py``.
"""
