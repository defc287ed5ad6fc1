"""An embedder: texts in, one vector for each."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import JudgeError
from .transport import Transport

_CACHED = 10_000


class Embedder:
    """Asks an OpenAI-compatible server for embeddings.

    Args:
        base_url: up to and including the version.
        model: the model's name there. Vectors of different models are never compared.
        api_key: sent as bearer token.
        timeout: seconds that one call may take.
        transport: for tests, and for other ways to ask.

    Thread-safe. A text is embedded once: vectors are kept (:meth:`clear_cache`).
    """

    def __init__(
        self, base_url: str, model: str, api_key: str | None = None, *, timeout: float = 30.0, transport: Transport | None = None
    ) -> None:
        self.model = model
        self._transport = transport or Transport(base_url, api_key, timeout)
        self._lock = threading.Lock()
        self._cache: OrderedDict[str, list[float]] = OrderedDict()

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text, in their order; all that are new in one call.

        Raises:
            JudgeError: the server could not be asked, or did not give a vector for each text.
        """
        with self._lock:
            known = {text: self._cache[text] for text in texts if text in self._cache}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            answer = self._transport.post("/embeddings", {"model": self.model, "input": missing})
            known |= dict(zip(missing, _vectors_in(answer, len(missing)), strict=True))
            with self._lock:
                for text in missing:
                    self._cache[text] = known[text]
                while len(self._cache) > _CACHED:
                    self._cache.popitem(last=False)
        return [known[text] for text in texts]

    def clear_cache(self) -> None:
        """Forget all vectors."""
        with self._lock:
            self._cache.clear()

    def close(self) -> None:
        """Release connections."""
        self._transport.close()


def _vectors_in(answer: Mapping[str, Any], wanted: int) -> list[list[float]]:
    data = answer.get("data")
    items = data if isinstance(data, list) and all(isinstance(item, dict) for item in data) else []
    if all(isinstance(item.get("index"), int) for item in items):
        items = sorted(items, key=lambda item: item["index"])
    vectors = [item.get("embedding") for item in items]
    if len(vectors) != wanted or not all(_is_vector(vector) for vector in vectors):
        raise JudgeError(f"the embedder gave no vector for each of {wanted} texts", "invalid_answer")
    if len({len(vector) for vector in vectors}) > 1:
        raise JudgeError("the embedder gave vectors of different lengths", "invalid_answer")
    return vectors


def _is_vector(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(x, (int, float)) and math.isfinite(x) for x in value)
