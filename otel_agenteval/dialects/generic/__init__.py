"""Infer the facts of spans that no dialect matches, from the shapes of their values.

May import the same modules as :mod:`~otel_agenteval.dialects`.
Start at :mod:`.reading`, which infers a span's role and fills its step. :mod:`.walk` collects a span's values, and
:mod:`.traces` decides whether the spans of a trace are a model's work at all.
"""
