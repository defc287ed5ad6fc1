"""Entry points in the application's own process: ``instrument()``, two processors, an exporter, and a pytest plugin.

Modules in this package may import :mod:`~otel_agenteval.engine` and lower subpackages. The only third-party packages that they
may import are the OpenTelemetry API and SDK and, in the plugin, pytest. Read :mod:`.attach` first.
"""
