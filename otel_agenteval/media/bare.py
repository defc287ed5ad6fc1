"""Recordings without anything but their sound: no tags, cover pictures, chapters or other tracks. Runs in the process that decodes."""

from __future__ import annotations

import base64
import io
import time
from typing import Any

import av

from .reading import FORMATS, Broken, Limits, opened

_OPTIONS = {"fflags": "+bitexact", "id3v2_version": "0"}
"""Nothing that says who wrote the file, either."""


def copied(data: bytes, mime: str, limits: Limits) -> dict[str, Any]:
    """The sound of a recording in a new file of the same type, packet by packet: nothing is decoded."""
    out = io.BytesIO()
    with opened(data, mime) as source:
        heard = mime.replace("video/", "audio/")
        mime = heard if heard in FORMATS else mime
        streams = source.streams.audio
        if not streams:
            raise Broken("it has no sound")
        if any(stream.codec_context.name == "vorbis" for stream in streams):  # other containers keep its comments as they are
            mime = "audio/ogg"
        with av.open(out, "w", format=_WRITERS.get(mime, FORMATS[mime]), options=_OPTIONS) as target:
            copies = {stream.index: target.add_stream_from_template(stream) for stream in streams}
            count = 0
            for packet in source.demux(*streams):
                if time.monotonic() > limits.until:
                    raise Broken("it is too long to be copied", too_large=True)
                if packet.dts is not None:
                    packet.stream = copies[packet.stream.index]
                    target.mux(packet)
                    count += 1
    if not count:
        raise Broken("it has no sound")
    return {"mime": mime, "data": base64.b64encode(out.getvalue()).decode()}


_WRITERS = {"audio/webm": "webm"}
"""Where the reader of a type has another name."""
