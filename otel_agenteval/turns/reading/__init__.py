"""From the spans of one turn to a :class:`~otel_agenteval.core.turn.Turn`: model calls, tool calls, messages.

May import what :mod:`~otel_agenteval.turns` may.
Start at :mod:`.turn`.
"""
