"""Parsers of span records, one module per instrumentation. Each turns records into steps.

May import :mod:`~otel_agenteval.spans` and :mod:`~otel_agenteval.core`, but nothing of OpenTelemetry.
Start at :mod:`.reader`, which calls them in order. :mod:`.voltagent` is a short example, and :mod:`.step` has the roles and fields.
"""
