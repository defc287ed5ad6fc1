"""Conversion of bytes and SDK spans to span records, one format for all inputs.

May import :mod:`~otel_agenteval.core` and, of third parties, OpenTelemetry's SDK and protobuf classes.
Start at :mod:`.record`.
"""
