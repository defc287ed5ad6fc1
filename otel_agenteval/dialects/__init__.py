"""Parsers of span records, one module per instrumentation. Each module turns records into steps.

May import :mod:`~otel_agenteval.spans` and :mod:`~otel_agenteval.core`, but nothing from OpenTelemetry. Start at
:mod:`.reader`, which calls the modules in order. :mod:`.voltagent` is a short example. :mod:`.step` has the roles and fields.
"""
