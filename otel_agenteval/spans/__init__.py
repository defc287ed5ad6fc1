"""Conversion of bytes and SDK spans to span records, the common format of all inputs.

May import :mod:`~otel_agenteval.core` and, from third parties, OpenTelemetry's SDK and protobuf classes. Start at
:mod:`.record`.
"""
