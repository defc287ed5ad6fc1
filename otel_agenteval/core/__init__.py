"""Shared building blocks: turns, scores, attribute names, self-metrics, errors and small helpers.

Modules here import nothing from other subpackages. Allowed third-party packages are orjson and pydantic-core. httpx and the
packages of extras are imported on first use. Start at :mod:`.turn` and :mod:`.score`, because all other subpackages use them.
"""
