"""Open images, recordings and videos of a turn, remove their metadata, and measure them.

Media are never opened on an agent's thread. A metric opens the media that it needs. The content is dropped with its score, or
after the last metric of the turn that shares it (:func:`.rules.sharing`).

Modules may import core and, on first use, httpx, Pillow, PyAV, webrtcvad, rapidocr, faster-whisper, fsspec and numpy. Start at
:mod:`.access`, which checks if media may be opened.
"""
