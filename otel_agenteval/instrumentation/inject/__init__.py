"""A folder with a ``sitecustomize`` module that Python imports at startup.

``otel-agenteval record`` puts this folder first in ``PYTHONPATH``.
"""
