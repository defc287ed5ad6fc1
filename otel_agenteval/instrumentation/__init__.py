"""The entry points in an application's own process: the one line, the processors, the exporter, the pytest plugin.

May import :mod:`~otel_agenteval.engine` and below; of third parties, the OpenTelemetry API and SDK.
Start at :mod:`.attach`.
"""
