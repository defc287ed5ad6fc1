"""Scores sent to an OTLP endpoint by connections of our own: outlet → spool → sender → client.

May import what :mod:`~otel_agenteval.outlets` may; of others grpc and httpx.
Start at :mod:`.outlet`.
"""
