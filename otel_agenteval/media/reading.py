"""Open audio and video containers.

This module runs in the decoder process (:mod:`.decoder`).
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import av

FORMATS = {
    "video/mp4": "mp4", "audio/mp4": "mp4", "video/webm": "matroska", "audio/webm": "matroska", "video/ogg": "ogg", "audio/ogg": "ogg",
    "video/x-msvideo": "avi", "audio/wav": "wav", "audio/mpeg": "mp3", "audio/flac": "flac",
}  # fmt: skip
"""The reader of each type.

The file doesn't choose its reader, because some formats can name other files, which would be opened.
"""


class Broken(Exception):
    """A file can't be read to its end."""

    def __init__(self, message: str, *, too_large: bool = False) -> None:
        super().__init__(message)
        self.too_large = too_large


@dataclass(frozen=True)
class Limits:
    until: float
    """Value of ``time.monotonic()`` at which measuring stops."""
    max_pixels: int
    max_edge: int


def opened(data: bytes, mime: str) -> Any:
    return av.open(io.BytesIO(data), "r", format=FORMATS[mime], metadata_errors="ignore")
