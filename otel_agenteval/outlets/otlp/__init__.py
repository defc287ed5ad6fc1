"""Outlet for an OTLP endpoint. It encodes requests, stores them in a spool, and sends them with retries.

May import the same packages as :mod:`~otel_agenteval.outlets`, and grpc and httpx. Start at :mod:`.outlet`.
"""
