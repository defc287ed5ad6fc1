"""Infer the roles (agent, model call, tool) and content of spans that no dialect matches, from attribute names and values.

Modules in this package may import the same modules as :mod:`~otel_agenteval.dialects`. Start reading at :mod:`.reading`, which
infers a span's role and fills its step. :mod:`.walk` collects a span's values. :mod:`.traces` checks the inferred roles against
the rest of the trace.
"""
