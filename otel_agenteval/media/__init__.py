"""Open images, recordings and videos of a turn, remove their metadata, and measure them.

A metric opens only the media that it needs, and never on the agent's thread. Content is freed after the metric or, inside
:func:`.rules.sharing`, after the turn's last metric.

This folder may import core and, on first use, httpx, Pillow, PyAV, webrtcvad, rapidocr, faster-whisper, fsspec and numpy. Start
at :mod:`.access`, which checks if media may be opened.
"""
