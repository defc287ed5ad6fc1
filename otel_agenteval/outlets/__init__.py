"""Destinations of scores. Each outlet is one module or folder, and a subclass of ``Outlet`` in :mod:`.base`.

Modules in this folder may import :mod:`~otel_agenteval.evaluation` and lower layers, OpenTelemetry, Prometheus, and packages that
send OTLP. Start reading at :mod:`.base`. :mod:`.fan_out` creates the outlets and emits scores through them. :mod:`.jsonl` is a
short example.
"""
