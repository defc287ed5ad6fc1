"""Judge benchmark, which measures how well a judge's scores of labeled turns agree with the human labels.

May import the same packages as :mod:`~otel_agenteval.judging`. Start at :mod:`.run`.
"""
