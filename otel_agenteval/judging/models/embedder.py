"""Embedder that gets vectors for texts from a server."""

from __future__ import annotations

import hashlib
import itertools
import math
import threading
from collections.abc import Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ...core.errors import ConfigError, JudgeError, NotAnswered
from ...media.types import ImageReference
from .base import EmbedderModel
from .model_server import ModelServer, RequestKeywords, RequestOptions, tokens_in
from .providers import openai, parsing
from .providers.base import HttpRequest, TokenUsage

if TYPE_CHECKING:
    from typing_extensions import Unpack

Images = Literal["text", "object", "messages"]
IMAGES: tuple[Images, ...] = ("text", "object", "messages")
_LARGEST_REPLY = 128 * 2**20


class Embedder(EmbedderModel):
    """Client for embeddings from an OpenAI-compatible server. Thread-safe.

    Each call runs in the calling thread.

    Args:
        base_url: the URL up to and including the version, without credentials or query.
        model: the model's name at the server. Vectors of different models are never compared.
        api_key: sent as bearer token.
        images: how images are sent. ``text``: their ``data:`` URIs or addresses, among the texts. ``object``: ``{"image": ...}``
            in a list with ``{"text": ...}`` (Jina's format). ``messages``: one image per request (vLLM's format).
        cache: stores vectors by model and text. Any mapping from text to vector. The default is no cache.
        **requests: options as for :class:`Judge`: ``headers``, ``timeout``, ``deadline``, ``max_concurrency``,
            ``requests_per_minute``, ``tokens_per_minute`` and ``prices``.

    Raises:
        ConfigError: an argument is invalid.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str | None = None,
        *,
        images: Images = "text",
        cache: MutableMapping[str, list[float]] | None = None,
        **requests: Unpack[RequestKeywords],
    ) -> None:
        options = RequestOptions.of("Embedder", requests)
        if not isinstance(model, str) or not model.strip():
            raise ConfigError("model: required")
        if images not in IMAGES:
            raise ConfigError(f"images: must be {', '.join(IMAGES[:-1])} or {IMAGES[-1]}, got {images!r}")
        self.model = model
        self._images = images
        own = openai.headers((api_key or "").strip() or None)
        self._server = ModelServer("openai", base_url, own, options, largest_reply=_LARGEST_REPLY)
        self.ledger = self._server.ledger
        self._cache = cache
        self._lock = threading.Lock()
        self._most = 0
        """Maximum number of texts in a request, as found so far, or 0 while unknown."""

    def __repr__(self) -> str:
        return f"Embedder({self._server.base_url!r}, {self.model!r})"

    @property
    def priced(self) -> bool:
        """Return True if the price is known from ``prices`` or from the price table."""
        return self._server.priced(self.model)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, in order.

        New texts are sent once each, in one request if the server accepts so many.

        Raises:
            JudgeError: the server couldn't be called, or didn't return a vector for each text.
        """
        known: dict[str, list[float]] = {}
        if self._cache is not None:
            with self._lock:
                known = {text: found for text in texts if (found := self._cache.get(self._key(text))) is not None}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            try:
                vectors = self._in_batches(missing, self._server.until())
            except JudgeError as error:
                raise JudgeError(f"embedder: {error}", error.error_type, error.retry_after) from None
            new = dict(zip(missing, vectors, strict=True))
            if self._cache is not None:
                with self._lock:
                    self._cache.update((self._key(text), vector) for text, vector in new.items())
            known |= new
        return [known[text] for text in texts]

    def clear_cache(self) -> None:
        """Delete all cached vectors."""
        if self._cache is not None:
            with self._lock:
                self._cache.clear()

    def close(self) -> None:
        """Close all connections."""
        self._server.close()

    def _key(self, text: str) -> str:
        return hashlib.sha256(f"{self._server.base_url}\n{self.model}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()

    def _in_batches(self, texts: list[str], until: float) -> list[list[float]]:
        """Return all vectors. If the server rejects a batch, smaller ones follow, down to one text."""
        found: list[list[float]] = []
        while len(found) < len(texts):
            batch = texts[len(found) : len(found) + (self._most or len(texts))]
            if self._images == "messages":  # one image alone, or the texts before the next image
                are_texts = itertools.takewhile(lambda text: not isinstance(text, ImageReference), batch)
                batch = list(are_texts) or batch[:1]
            try:
                found += self._post(batch, until)
            except NotAnswered as refusal:
                if refusal.status not in (400, 413, 422) or "batch" not in refusal.hints or len(batch) == 1:
                    raise
                self._most = len(batch) // 2
        return found

    def _post(self, texts: list[str], until: float) -> list[list[float]]:
        def read(body: dict[str, Any]) -> tuple[list[list[float]], TokenUsage]:
            tokens = parsing.count(parsing.mapping(body.get("usage")).get("prompt_tokens"))
            return _vectors_in(body, len(texts)), TokenUsage(tokens, 0)

        request = HttpRequest("/embeddings", {"model": self.model, **_material_of(texts, self._images)})
        return self._server.call("embed", self.model, request, read, until=until, estimate=TokenUsage(tokens_in(texts), 0))


def _material_of(texts: Sequence[str], images: Images) -> dict[str, Any]:
    """Return the request's texts and images. Jina's format has the bytes of a ``data:`` URI without its head."""
    are_images = [isinstance(text, ImageReference) for text in texts]
    if images == "text" or not any(are_images):
        return {"input": list(texts)}
    if images == "messages":
        return {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": str(texts[0])}}]}]}
    items = []
    for text, is_image in zip(texts, are_images, strict=True):
        image = text.partition(",")[2] if text.startswith("data:") else str(text)
        items.append({"image": image} if is_image else {"text": text})
    return {"input": items}


def _vectors_in(answer: Mapping[str, Any], wanted: int) -> list[list[float]]:
    data = answer.get("data")
    items = data if isinstance(data, list) and all(isinstance(item, dict) for item in data) else []
    if all(isinstance(item.get("index"), int) for item in items):
        items = sorted(items, key=lambda item: item["index"])
    vectors = [item.get("embedding") for item in items]
    are_vectors = (
        isinstance(vector, list) and vector and all(type(x) in (int, float) and math.isfinite(x) for x in vector)
        for vector in vectors
    )
    if len(vectors) != wanted or not all(are_vectors):
        raise JudgeError(f"the answer doesn't contain one vector for each of {wanted} texts", "invalid_answer")
    if len({len(vector) for vector in vectors}) > 1:
        raise JudgeError("the answer's vectors have different lengths", "invalid_answer")
    return vectors
