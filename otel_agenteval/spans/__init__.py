"""Convert serialized spans and SDK spans to span records, the only span format that the engine reads.

Modules in this package may import :mod:`~otel_agenteval.core`, OpenTelemetry's SDK, and protobuf classes.
Start reading at :mod:`.record`.
"""
