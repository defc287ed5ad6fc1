"""How well a judge judges: labelled turns, what the judge says of each, and how far that agrees with careful humans.

May import what :mod:`~otel_agenteval.judging` may.
Start at :mod:`.run`.
"""
