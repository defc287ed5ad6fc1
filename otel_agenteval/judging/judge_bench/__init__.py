"""Judge benchmark: labeled turns, and how well a judge's scores agree with human labels.

May import the same packages as :mod:`~otel_agenteval.judging`. Start at :mod:`.run`.
"""
