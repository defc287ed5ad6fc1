"""Spans that no named dialect knows, read by their shape.

May import what :mod:`~otel_agenteval.dialects` may.
Start at :mod:`.reading`, which says what a span is and fills its step; :mod:`.facts` finds what a span holds, and :mod:`.traces`
decides whether the spans of a trace are a model's work at all.
"""
