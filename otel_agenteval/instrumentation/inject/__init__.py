"""A folder that ``otel-agenteval record`` puts first in ``PYTHONPATH``: Python imports ``sitecustomize`` from it when it starts."""
