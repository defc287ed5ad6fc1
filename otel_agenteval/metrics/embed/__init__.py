"""Metrics that compare the embeddings of texts or images. The embedder is an argument of each metric.

This package may import :mod:`~otel_agenteval.core`, :mod:`~otel_agenteval.media`, the registry, ``metrics.lib`` and numpy. Start
at ``embeddings.py``.
"""
