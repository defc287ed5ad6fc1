"""Where scores leave: one module or folder per outlet, all behind the one protocol in :mod:`.base`.

May import :mod:`~otel_agenteval.evaluation` and below; of others OpenTelemetry, Prometheus and what carries OTLP.
Start at :mod:`.base`, then :mod:`.jsonl`, the shortest one.
"""
