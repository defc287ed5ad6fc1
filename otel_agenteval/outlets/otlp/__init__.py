"""Outlet for an OTLP endpoint: the encoding makes requests, the spool stores them, the outlet retries, the client sends.

May import what :mod:`~otel_agenteval.outlets` may, and the packages grpc and httpx.
Start at :mod:`.outlet`.
"""
