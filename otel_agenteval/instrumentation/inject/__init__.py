"""A folder with a ``sitecustomize`` module that Python imports at startup.

``otel-agenteval record`` puts it first in ``PYTHONPATH``.
"""
