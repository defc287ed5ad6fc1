"""Infer the roles and content of spans in unknown formats from attribute names and values.

Modules in this package can import the same modules as :mod:`~otel_agenteval.dialects`. Start reading at :mod:`.reading`, which
infers a span's role (such as agent, model call, or tool) and fills its step. :mod:`.walk` collects span values. :mod:`.traces`
corrects inferred roles that don't fit the rest of the trace.
"""
