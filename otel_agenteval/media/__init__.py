"""Functions that open a turn's images, recordings, and videos, remove metadata, and compute measurements.

A metric opens only the media that it needs. The content is freed when the metric or, inside :func:`.rules.sharing`, the turn's last
metric ends.

Modules in this folder may import :mod:`~otel_agenteval.core` and, on first use, httpx, Pillow, PyAV, webrtcvad, rapidocr,
faster-whisper, fsspec, and numpy. Start reading at :mod:`.access`, which checks if media may be opened.
"""
