"""Kafka consumer that reads spans and log records for `otel-agenteval worker`.

A topic can have at most one active worker per partition.

Modules in this folder may import :mod:`~otel_agenteval.server` and :mod:`~otel_agenteval.engine`. The only third-party package is
confluent-kafka, imported only when needed. Start reading at :mod:`.consumer`.
"""
