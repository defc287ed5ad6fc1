"""Metrics that don't call an LLM or an embedding model.

Usually, each module contains one metric family. To write a metric, start with a copy of a function in ``answer.py``.
"""
