"""Judge benchmark, which compares a judge's scores with human labels for the same turns.

Modules in this folder may import the same packages as :mod:`~otel_agenteval.judging`. Start reading at :mod:`.run`.
"""
