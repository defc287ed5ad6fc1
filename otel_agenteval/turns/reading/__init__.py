"""Build a :class:`~otel_agenteval.core.turn.Turn` from the spans of one turn.

May import what :mod:`~otel_agenteval.turns` may. Start with :mod:`.turn`.
"""
