"""Judge benchmark, which measures the agreement between a judge's scores and human labels of the same turns.

Modules in this folder may import the same packages as :mod:`~otel_agenteval.judging`. Start reading at :mod:`.run`.
"""
