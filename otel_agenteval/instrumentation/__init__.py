"""Entry points in the application's own process: ``instrument()``, the processors, the exporter, and the pytest plugin.

Modules in this package may import :mod:`~otel_agenteval.engine` and lower subpackages, and from third parties only the
OpenTelemetry API and SDK. Read :mod:`.attach` first.
"""
