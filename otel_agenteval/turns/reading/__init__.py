"""Build a :class:`~otel_agenteval.core.turn.Turn` from the spans of one turn.

Modules in this package may import the same packages as :mod:`~otel_agenteval.turns`. Read :mod:`.turn` first.
"""
