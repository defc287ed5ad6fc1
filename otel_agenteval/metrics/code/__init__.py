"""Metrics that don't call an LLM or an embedding model.

Usually, each module is one metric family. To write a metric, copy a function in ``answer.py``.
"""
