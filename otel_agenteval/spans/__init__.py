"""Convert serialized spans and SDK spans to span records, the format in which the engine reads all spans.

Modules in this package may import :mod:`~otel_agenteval.core` and, from third parties, OpenTelemetry's SDK and protobuf classes.
Start reading at :mod:`.record`.
"""
