"""Open images, recordings and videos of a turn, remove their metadata, and measure them.

Media are never opened on an agent's thread and never kept. A metric opens what it needs, and the content is dropped
with its score.

May import core and, on first use, httpx, Pillow, PyAV, webrtcvad, fsspec and numpy. Start at :mod:`.access`, which
decides what may be opened.
"""
