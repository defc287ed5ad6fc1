"""Shared building blocks: turns, scores, names on the wire, self-metrics, errors and small helpers.

May import no other room. Allowed third-party packages: orjson and pydantic-core, plus httpx and the packages of extras on first
use.
Start at :mod:`.turn` and :mod:`.score`: every other room produces them or passes them on.
"""
