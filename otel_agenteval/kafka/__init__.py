"""Kafka consumer that reads spans and log records for `otel-agenteval worker`.

In a consumer group, each partition has at most one active worker.

Modules in this folder may import :mod:`~otel_agenteval.server` and :mod:`~otel_agenteval.engine`. The only third-party package is
confluent-kafka, which is imported only when needed. Start reading at :mod:`.consumer`.
"""
