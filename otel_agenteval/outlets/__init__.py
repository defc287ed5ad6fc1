"""Where scores leave: one module or folder per outlet, all of them an ``Outlet`` of :mod:`.base`.

May import :mod:`~otel_agenteval.evaluation` and below; of third parties, OpenTelemetry, Prometheus and what carries OTLP.
Start at :mod:`.base`; :mod:`.factory` makes them, :mod:`.fan_out` emits through them, and :mod:`.jsonl` is a short one.
"""
