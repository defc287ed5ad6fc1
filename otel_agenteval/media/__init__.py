"""Open images, recordings and videos of a turn, remove their metadata, and measure them.

Media are never opened on an agent's thread. A metric opens what it needs, and the content is dropped with its score, or after the
last metric of the turn that shares it (:func:`.rules.sharing`).

May import core and, on first use, httpx, Pillow, PyAV, webrtcvad, rapidocr, faster-whisper, fsspec and numpy. Start at
:mod:`.access`, which decides what may be opened.
"""
