"""Copy the audio of a recording without tags, cover images, chapters and other tracks.

This module runs in the decoder process.
"""

from __future__ import annotations

import base64
import io
import time
from typing import Any

import av

from .reading import FORMATS, Broken, Limits, opened

_OPTIONS = {"fflags": "+bitexact", "id3v2_version": "0"}
"""Options that don't write the name of the software either."""


def copied(data: bytes, mime: str, limits: Limits) -> dict[str, Any]:
    """Copy the audio of a recording packet by packet into a new file of the same type.

    Nothing is decoded.
    """
    out = io.BytesIO()
    with opened(data, mime) as source:
        heard = mime.replace("video/", "audio/")
        mime = heard if heard in FORMATS else mime
        streams = source.streams.audio
        if not streams:
            raise Broken("its audio track is missing")
        if any(stream.codec_context.name == "vorbis" for stream in streams):  # other containers would keep its comments
            mime = "audio/ogg"
        with av.open(out, "w", format=_WRITERS.get(mime, FORMATS[mime]), options=_OPTIONS) as target:
            copies = {stream.index: target.add_stream_from_template(stream) for stream in streams}
            count = 0
            for packet in source.demux(*streams):
                if time.monotonic() > limits.until:
                    raise Broken("it is too long to copy in time", too_large=True)
                if packet.dts is not None:
                    packet.stream = copies[packet.stream.index]
                    target.mux(packet)
                    count += 1
    if not count:
        raise Broken("its audio track is missing")
    return {"mime": mime, "data": base64.b64encode(out.getvalue()).decode()}


_WRITERS = {"audio/webm": "webm"}
"""Formats of types whose reader has another name."""
