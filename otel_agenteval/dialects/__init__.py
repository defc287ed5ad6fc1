"""One module per instrumentation: what its span records mean, as steps.

May import :mod:`~otel_agenteval.spans` and :mod:`~otel_agenteval.core`; nothing of OpenTelemetry.
Start at :mod:`.reader`, which reads them in order, and :mod:`.otel_genai`, the convention itself.
"""
