"""Outlets, which export scores. Each outlet is a module or folder with a subclass of ``Outlet`` from :mod:`.base`.

Modules in this folder may import :mod:`~otel_agenteval.evaluation`, lower layers, OpenTelemetry, Prometheus, and packages that send
OTLP. Start reading at :mod:`.base`. :mod:`.fan_out` creates the outlets and sends scores to them. :mod:`.jsonl` is a short example.
"""
