"""Functions that open images, recordings, and videos of a turn, remove their metadata, and measure them.

A metric opens only the media that it needs, and never on the agent's thread. The content is freed when the metric ends or, inside
:func:`.rules.sharing`, when the turn's last metric ends.

Modules in this folder may import :mod:`~otel_agenteval.core` and, on first use, httpx, Pillow, PyAV, webrtcvad, rapidocr,
faster-whisper, fsspec, and numpy. Start reading at :mod:`.access`, which checks if media may be opened.
"""
