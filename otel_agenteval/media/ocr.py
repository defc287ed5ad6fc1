"""Run the process that reads text in images.

:mod:`.decoding` starts it as ``python -m otel_agenteval.media.ocr``. The models use half a gigabyte of memory, which
is freed when the process ends. Untrusted files are opened in a separate process for the same reasons as in
:mod:`.decoder`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from ..core.errors import AgentEvalError
from .access import MediaContent
from .decoder import BUSY, has_turn, limit
from .rules import Rules, opening

_MEMORY, _DATA = 4 << 30, 3 << 29
"""Limits of the address space and of its writable part. The runtime maps much more than it uses, about 1 GB for the
largest image.
"""
_SURE = 0.5
"""Minimum confidence of the model at which a line is kept."""


def main() -> None:
    """Read the order (one line of JSON) and all images from standard input, and write one JSON object."""
    source = sys.stdin.buffer
    order = json.loads(source.readline())
    if not has_turn(order):
        json.dump(BUSY, sys.stdout)
        return
    images = [MediaContent(source.read(size), mime) for size, mime in order["images"]]
    json.dump(_answer(order, images), sys.stdout)


def _answer(order: dict[str, Any], images: list[MediaContent]) -> dict[str, Any]:
    try:
        import numpy as np
        from rapidocr import RapidOCR

        from .images import decoded
    except ImportError as error:
        return {"error": "missing", "message": str(error)}
    limit({**order, "memory": max(order["memory"], _MEMORY), "data": max(order["memory"], _DATA)})
    try:
        engine = RapidOCR(params={"Global.log_level": "critical"})
    except Exception as error:
        return {"error": "decoder_failed", "message": f"loading the OCR model failed ({type(error).__name__})"}
    try:
        found = []
        with opening(Rules(max_pixels=order["max_pixels"])):
            for image in images:
                seen: Any = engine(np.asarray(decoded(image))[:, :, ::-1])
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
