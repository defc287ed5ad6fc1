"""Score store in SQLite or PostgreSQL: the outlet that writes scores, the store, and its export.

This folder may import the same packages as :mod:`~otel_agenteval.outlets`. Start at :mod:`.statements`.
"""
