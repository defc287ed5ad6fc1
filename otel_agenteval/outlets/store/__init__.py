"""Score store in SQLite or PostgreSQL: the outlet that writes it, the store itself, and its export.

May import the same packages as :mod:`~otel_agenteval.outlets`. Start at :mod:`.statements`.
"""
