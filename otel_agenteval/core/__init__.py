"""Shared building blocks: turns, scores, attribute names, self-metrics, errors, and small helpers.

Modules here import nothing from other subpackages, and only orjson and pydantic-core from third parties. They import httpx and
optional packages on first use. Read :mod:`.turn` and :mod:`.score` first, because all other subpackages use them.
"""
