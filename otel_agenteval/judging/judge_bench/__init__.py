"""Judge benchmark, which compares a judge's scores with the scores that careful raters would give to the same turns.

Modules in this folder may import the same packages as :mod:`~otel_agenteval.judging`. Start reading at :mod:`.run`.
"""
