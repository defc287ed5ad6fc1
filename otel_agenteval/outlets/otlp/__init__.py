"""Scores sent to an OTLP endpoint by connections of our own: the outlet encodes, the spool holds, the sender retries, the client sends.

May import what :mod:`~otel_agenteval.outlets` may; of third parties, grpc and httpx.
Start at :mod:`.outlet`.
"""
