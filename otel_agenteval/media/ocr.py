"""The process that reads the writing in images: ``python -m otel_agenteval.media.ocr``, started by :mod:`.decoding`.

The models take half a gigabyte, which goes with the process; and what opens files of strangers is kept apart, as in :mod:`.decoder`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from ..core.errors import AgentEvalError
from .access import Content
from .decoder import BUSY, has_turn, limit
from .rules import Rules, opening

_MEMORY, _DATA = 4 << 30, 3 << 29
"""Address space, and what of it may be written: the runtime maps much more than it uses, about 1 GB for the largest image."""
_SURE = 0.5
"""Of a line, by the model's own account, from which on it is taken."""


def main() -> None:
    """Read a line of orders and the bytes of all images from standard input, and write one JSON object to standard output."""
    source = sys.stdin.buffer
    order = json.loads(source.readline())
    if not has_turn(order):
        json.dump(BUSY, sys.stdout)
        return
    images = [Content(source.read(size), mime) for size, mime in order["images"]]
    json.dump(_answer(order, images), sys.stdout)


def _answer(order: dict[str, Any], images: list[Content]) -> dict[str, Any]:
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
        return {"error": "decoder_failed", "message": f"the model that reads cannot be loaded ({type(error).__name__})"}
    try:
        found = []
        with opening(Rules(max_pixels=order["max_pixels"])):
            for image in images:
                seen: Any = engine(np.asarray(decoded(image))[:, :, ::-1])
                found.append([text for text, sure in zip(seen.txts or (), seen.scores or (), strict=True) if sure >= _SURE])
    except AgentEvalError as error:
        return {"error": getattr(error, "error_type", "invalid_media"), "message": str(error)}
    except MemoryError:
        return {"error": "media_too_large", "message": "reading it takes too much memory"}
    except Exception as error:  # decoders of broken files raise anything
        return {"error": "invalid_media", "message": f"it cannot be read ({type(error).__name__})"}
    return {"lines": found}


if __name__ == "__main__":
    main()
