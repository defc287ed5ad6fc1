"""Opening a container of sounds and pictures. Runs in the process that decodes (:mod:`.decoder`)."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import av

FORMATS = {
    "video/mp4": "mp4", "audio/mp4": "mp4", "video/webm": "matroska", "audio/webm": "matroska", "video/ogg": "ogg", "audio/ogg": "ogg",
    "video/x-msvideo": "avi", "audio/wav": "wav", "audio/mpeg": "mp3", "audio/flac": "flac",
}  # fmt: skip
"""The reader of each type. Which one it is, is never left to a file: there are kinds that name other files, which would be opened."""


class Broken(Exception):
    """A file that cannot be read to its end."""

    def __init__(self, message: str, *, too_large: bool = False) -> None:
        super().__init__(message)
        self.too_large = too_large


@dataclass(frozen=True)
class Limits:
    """How much may be done with one file."""

    until: float
    """``time.monotonic()`` at which what was measured until then is enough."""
    max_pixels: int
    max_edge: int


def opened(data: bytes, mime: str) -> Any:
    """The container; a context manager."""
    return av.open(io.BytesIO(data), "r", format=FORMATS[mime], metadata_errors="ignore")
