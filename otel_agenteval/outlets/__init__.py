"""Destinations of scores, one module or folder per outlet, each an ``Outlet`` of :mod:`.base`.

May import :mod:`~otel_agenteval.evaluation` and below, OpenTelemetry, Prometheus, and the packages that transport OTLP.
Start at :mod:`.base`. :mod:`.fan_out` creates outlets and emits through them, and :mod:`.jsonl` is a short example.
"""
