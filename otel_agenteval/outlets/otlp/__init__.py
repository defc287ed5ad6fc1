"""Outlet for an OTLP endpoint. Encodes requests, stores requests in a queue (spool), and sends requests with retries.

Modules in this folder may import the same packages as :mod:`~otel_agenteval.outlets`, plus grpc and httpx. Start reading at
:mod:`.outlet`.
"""
