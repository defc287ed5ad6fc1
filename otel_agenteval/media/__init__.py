"""Open images, recordings, and videos of a turn, remove their metadata, and measure them.

A metric opens only the media that it needs, and never on the agent's thread. Content is freed after the metric or, inside
:func:`.rules.sharing`, after the turn's last metric.

Modules in this folder may import core and, only when needed, httpx, Pillow, PyAV, webrtcvad, rapidocr, faster-whisper, fsspec, and
numpy. Start reading at :mod:`.access`, which checks whether media may be opened.
"""
