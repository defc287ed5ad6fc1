"""Judge benchmark. Measures how well a judge's scores of labeled turns agree with human labels.

This folder may import the same packages as :mod:`~otel_agenteval.judging`. Start at :mod:`.run`.
"""
