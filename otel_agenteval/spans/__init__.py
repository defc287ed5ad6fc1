"""Bytes and SDK objects become span records: one light record, whatever way a span came.

May import :mod:`~otel_agenteval.core`; of third parties, OpenTelemetry's SDK and protobuf classes.
Start at :mod:`.record`.
"""
