"""The process that decodes one sound or video: ``python -m otel_agenteval.media.decoder``, started by :mod:`.decoding`.

Decoders are large programs in C that read files of strangers. Here one can crash, hang or eat memory without taking anybody with it: the
process has limits on its memory, its time and its files, an empty environment, and ends with its file. As many work at once as their memory
allows; the others wait for their turn before they read anything.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    """Read a line of orders and the bytes from standard input, and write one JSON object to standard output."""
    source = sys.stdin.buffer
    order = json.loads(source.readline())
    json.dump(_answer(order, source.read()) if has_turn(order) else BUSY, sys.stdout)


_BETWEEN_LOOKS = 0.05
BUSY = {"error": "media_timeout", "message": "others are decoded, and none was done in time (media.decode_total)"}


def has_turn(order: dict[str, Any]) -> bool:
    """Wait until fewer processes work than are allowed at once, and return True; return False if none was done in time.

    Each that works holds a lock on one file of this package, which ends with it, however it ends: so all processes of an installation share
    one bound, and nothing is written anywhere. Where files cannot be locked nobody waits.
    """
    try:
        import fcntl
    except ImportError:  # not on Windows
        return True
    places = sorted(Path(__file__).parent.glob("*.py"))[: order["at_once"]]
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
    """Bound what this process may take."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    seconds = 2 * int(order["seconds"]) + 5  # a video is gone through twice
    signal.alarm(seconds + 5)  # who asked does not count the time that it waited for its turn
    for limit, most in (
        (resource.RLIMIT_AS, order["memory"]), (resource.RLIMIT_DATA, order.get("data", order["memory"])), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):  # fmt: skip
        hard = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (most, most) if hard == resource.RLIM_INFINITY or most <= hard else (hard, hard))


def _answer(order: dict[str, Any], data: bytes) -> dict[str, Any]:
    try:
        import av

        av.logging.set_level(None)
        from . import bare, sound, video
        from .reading import Broken, Limits
    except ImportError as error:
        return {"error": "missing", "message": str(error)}
    limit(order)
    limits = Limits(time.monotonic() + order["seconds"], order["max_pixels"], order["max_edge"])
    try:
        if order["task"] == "video":
            return video.examined(data, order["mime"], order["frames"], order["sampling"], limits)
        if order["task"] == "bare":
            return bare.copied(data, order["mime"], limits)
        if order["task"] == "samples":
            return sound.samples(data, order["mime"], limits)
        return sound.examined(data, order["mime"], order["speech"], limits)
    except Broken as error:
        return {"error": "media_too_large" if error.too_large else "invalid_media", "message": str(error)}
    except MemoryError:
        return {"error": "media_too_large", "message": "it takes more memory than is allowed (media.decode_memory)"}
    except Exception as error:  # decoders of broken files raise anything
        return {"error": "invalid_media", "message": f"it cannot be decoded ({type(error).__name__})"}


if __name__ == "__main__":
    main()
