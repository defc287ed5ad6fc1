"""Metrics that compare the embeddings of texts or images. Each metric receives the embedder as an argument.

Modules in this package may import :mod:`~otel_agenteval.core`, :mod:`~otel_agenteval.media`, the registry, ``metrics.lib``, and numpy. Start
reading at ``embeddings.py``.
"""
