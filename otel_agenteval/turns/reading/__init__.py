"""Build a :class:`~otel_agenteval.core.turn.Turn` from the spans of one turn.

This package may import the same modules as :mod:`~otel_agenteval.turns`. Read :mod:`.turn` first.
"""
