"""Score store in SQLite or PostgreSQL: the outlet that writes it, the store itself, and its export.

May import what :mod:`~otel_agenteval.outlets` may.
Start at :mod:`.statements`.
"""
