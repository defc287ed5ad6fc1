"""Score store in SQLite or PostgreSQL: the outlet that writes scores, the store itself, and the export of stored scores.

Modules in this folder may import the same packages as :mod:`~otel_agenteval.outlets`. Start reading at :mod:`.statements`.
"""
