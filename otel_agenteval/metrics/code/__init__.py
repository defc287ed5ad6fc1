"""Metrics that don't call a model themselves.

Usually, each module contains one metric family. To write a metric, start with a copy of a function in ``answer.py``.
"""
