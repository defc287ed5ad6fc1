"""Convert bytes and SDK spans to span records, the common format of all inputs.

This package may import :mod:`~otel_agenteval.core` and, from third parties, OpenTelemetry's SDK and protobuf classes. Read
:mod:`.record` first.
"""
