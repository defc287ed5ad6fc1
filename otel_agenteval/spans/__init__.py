"""Convert bytes and SDK spans to span records, the one format for all inputs.

May import :mod:`~otel_agenteval.core` and, from third parties, OpenTelemetry's SDK and protobuf classes.
Start at :mod:`.record`.
"""
