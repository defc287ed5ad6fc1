"""Process that decodes one recording or video, or reads text in images.

:mod:`.decoding` starts this process as ``python -m otel_agenteval.media.decoder``. Decoders are large C programs that read
untrusted files. In a separate process, a decoder can crash, hang, or use too much memory without affecting other work. The process
has limits on memory, time, and files, and an almost empty environment. The process ends after one request. ``media.decode_total``
limits the number of concurrent processes. Further processes wait before they read the media.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    """Read a request (one line of JSON) and the media bytes from standard input. Write the result as JSON to standard output."""
    source = sys.stdin.buffer
    order = json.loads(source.readline())
    found: dict[str, Any] = BUSY
    if has_turn(order):
        if order["task"] == "writing":
            found = _writing(order, [(source.read(size), mime) for size, mime in order["images"]])
        else:
            found = _decoded(order, source.read())
    json.dump(found, sys.stdout)


_BETWEEN_LOOKS = 0.05
BUSY = {"error": "media_timeout", "message": "all decoder processes are busy (media.decode_total)"}
_MEMORY, _DATA = 4 << 30, 3 << 29
"""Minimum limits (bytes) on total and writable address space to read text. The OCR runtime uses up to 1 GB, but reserves more."""
_SURE = 0.5
"""Minimum confidence of a recognized line of text. Less certain lines are dropped."""


def has_turn(order: dict[str, Any]) -> bool:
    """Wait until this process may run. If the wait exceeds ``wait`` seconds, return False.

    Each decoder process locks one file of this package until it ends. Therefore, all decoder processes of an installation share one
    limit, and nothing is written to disk. If files can't be locked, the number of processes is unlimited.
    """
    places = sorted(Path(__file__).parents[1].glob("*/*.py"))[: order["at_once"]]
    until = time.monotonic() + order["wait"]
    while True:
        for place in places:
            descriptor = os.open(place, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
            except OSError:  # a file system without locks
                return True
            else:
                return True
        if time.monotonic() >= until:
            return False
        time.sleep(_BETWEEN_LOOKS)


def limit(order: dict[str, Any]) -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    seconds = 2 * int(order["seconds"]) + 5  # a video is read twice
    signal.alarm(seconds + 5)  # starts after the wait for a slot, which the caller doesn't count
    for limit, most in (
        (resource.RLIMIT_AS, order["memory"]), (resource.RLIMIT_DATA, order.get("data", order["memory"])), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):  # fmt: skip
        hard = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (most, most) if hard == resource.RLIM_INFINITY or most <= hard else (hard, hard))


def _decoded(order: dict[str, Any], data: bytes) -> dict[str, Any]:
    try:
        import av

        av.logging.set_level(None)
        from . import sound, video
        from .sound import Broken, Limits
    except ImportError as error:
        return {"error": "missing", "message": str(error)}
    limit(order)
    limits = Limits(time.monotonic() + order["seconds"], order["max_pixels"], order["max_edge"])
    try:
        if order["task"] == "video":
            return video.examined(data, order["mime"], order["frames"], order["sampling"], limits)
        if order["task"] == "bare":
            return sound.copied(data, order["mime"], limits)
        if order["task"] == "samples":
            return sound.samples(data, order["mime"], limits)
        return sound.examined(data, order["mime"], order["speech"], limits)
    except Broken as error:
        return {"error": "media_too_large" if error.too_large else "invalid_media", "message": str(error)}
    except MemoryError:
        return {"error": "media_too_large", "message": "decoding requires too much memory (media.decode_memory)"}
    except Exception as error:  # broken files can cause any exception
        return {"error": "invalid_media", "message": f"decoding failed ({type(error).__name__})"}


def _writing(order: dict[str, Any], images: list[tuple[bytes, str]]) -> dict[str, Any]:
    try:
        import numpy as np
        from rapidocr import RapidOCR

        from .images import decoded
    except ImportError as error:
        return {"error": "missing", "message": str(error)}
    from ..core.errors import AgentEvalError
    from .access import MediaContent
    from .rules import Rules, opening

    limit({**order, "memory": max(order["memory"], _MEMORY), "data": max(order["memory"], _DATA)})
    try:
        engine = RapidOCR(params={"Global.log_level": "critical"})
    except Exception as error:
        return {"error": "decoder_failed", "message": f"loading the OCR model failed ({type(error).__name__})"}
    try:
        found = []
        with opening(Rules(max_pixels=order["max_pixels"])):
            for data, mime in images:
                seen: Any = engine(np.asarray(decoded(MediaContent(data, mime)))[:, :, ::-1])
                found.append([text for text, sure in zip(seen.txts or (), seen.scores or (), strict=True) if sure >= _SURE])
    except AgentEvalError as error:
        return {"error": getattr(error, "error_type", "invalid_media"), "message": str(error)}
    except MemoryError:
        return {"error": "media_too_large", "message": "reading the text requires too much memory (media.decode_memory)"}
    except Exception as error:  # broken files can cause any exception
        return {"error": "invalid_media", "message": f"reading the text failed ({type(error).__name__})"}
    return {"lines": found}


if __name__ == "__main__":
    main()
