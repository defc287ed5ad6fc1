"""Folder with a ``sitecustomize`` module, which Python imports at startup.

``otel-agenteval record`` puts this folder first in ``PYTHONPATH``.
"""
