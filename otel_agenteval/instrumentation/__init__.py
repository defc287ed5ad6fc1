"""Entry points in the application's own process: ``instrument()``, the processors, the exporter and the pytest plugin.

Modules may import :mod:`~otel_agenteval.engine` and lower subpackages. Allowed third-party packages are the OpenTelemetry API and
SDK. Start at :mod:`.attach`.
"""
