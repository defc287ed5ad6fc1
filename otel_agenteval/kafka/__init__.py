"""Spans from Kafka, for as many workers as its topic has partitions.

May import :mod:`~otel_agenteval.server` and :mod:`~otel_agenteval.engine`; of third parties, confluent-kafka, on first use.
Start at :mod:`.consumer`.
"""
