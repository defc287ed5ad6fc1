"""Shared building blocks: turns, scores, names on the wire, self-metrics, errors and small helpers.

Modules here import nothing from the other subpackages. Allowed third-party packages: orjson and pydantic-core, and, imported on
first use, httpx and the packages of extras.
Start at :mod:`.turn` and :mod:`.score`: all other subpackages produce them or pass them on.
"""
