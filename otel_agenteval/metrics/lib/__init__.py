"""What metrics of several families share: reading JSON, code, SQL and XML, personal data, prices, trees of agents.

May import :mod:`~otel_agenteval.core`; each optional package is imported by one module here, on first use.
Start with the family that needs it: nothing here is a metric.
"""
