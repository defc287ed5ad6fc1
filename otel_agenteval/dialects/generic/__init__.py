"""Infer roles and content of spans that no dialect matches, from the shapes of their values.

This package may import the same modules as :mod:`~otel_agenteval.dialects`. Read :mod:`.reading` first, which infers a span's
role and fills its step. :mod:`.walk` collects a span's values, and :mod:`.traces` decides if a trace's spans involve a model.
"""
