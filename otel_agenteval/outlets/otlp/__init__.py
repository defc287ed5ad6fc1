"""Outlet for an OTLP endpoint: the outlet encodes, the spool stores, the sender retries, the client sends.

May import what :mod:`~otel_agenteval.outlets` may, and the packages grpc and httpx.
Start at :mod:`.outlet`.
"""
