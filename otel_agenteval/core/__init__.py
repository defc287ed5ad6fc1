"""Shared building blocks: turns, scores, attribute names, self-metrics, errors, and small helpers.

Modules in this folder don't import other subpackages. They import orjson and the OpenTelemetry API. :mod:`.outbound` also imports
httpx and httpcore. Other packages are imported on first use. Read :mod:`.turn` and :mod:`.score` first.
"""
