"""Embedders: a client for an embedding server, and two embedders that run in this process free of charge.

The local text model is a table with one vector for each of 32,000 word pieces. A text's vector is the mean of its word pieces'
vectors, computed in less than a millisecond. Similar vectors mean similar topics. Paraphrases often have a similarity of 0.5 to 1,
and unrelated texts below 0.2. Word order is ignored, so negation isn't recognized. Scores aren't comparable with scores from other
models.

The local model for images and texts is a CLIP or SigLIP model that Hugging Face tools exported to ONNX. This package doesn't
include the weights. The model's folder must contain ``tokenizer.json`` and ``preprocessor_config.json``. The model itself is in
``model.onnx``, or in ``text_model.onnx`` and ``vision_model.onnx``. A subfolder ``onnx`` can contain these ONNX files.
"""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import json
import math
import threading
from abc import abstractmethod
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ...core.clock import SYSTEM_CLOCK
from ...core.errors import ConfigError, JudgeError, NotAnswered
from ...core.extras import require
from ...media.access import ImageReference, content_of
from ...media.images import decoded
from .base import Account, AccountLedger, EmbedderModel
from .model_server import ModelServer, RequestKeywords, RequestOptions, tokens_in
from .providers import openai, parsing
from .providers.base import HttpRequest, TokenUsage

if TYPE_CHECKING:
    from typing_extensions import Unpack

Images = Literal["text", "object", "messages"]
IMAGES: tuple[Images, ...] = ("text", "object", "messages")
_LARGEST_REPLY = 128 * 2**20


class Embedder(EmbedderModel):
    """Client for embeddings from an OpenAI-compatible server. Thread-safe. Each call runs in the calling thread.

    Args:
        base_url: URL including the API version, without credentials or query.
        model: name of the model on the server. Vectors of different models are never compared.
        api_key: API key, sent as bearer token.
        images: format of images in requests. ``text``: image URIs in the list of texts. ``object``: a list of ``{"image": ...}``
            and ``{"text": ...}`` objects (Jina's format). ``messages``: one image per request (vLLM's format).
        cache: mapping from a text's hash to its vector. Default: no cache.
        **requests: same options as for :class:`Judge`: ``headers``, ``timeout``, ``deadline``, ``max_concurrency``,
            ``requests_per_minute``, ``tokens_per_minute``, and ``prices``.

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
            raise ConfigError(f"images: must be {', '.join(IMAGES[:-1])}, or {IMAGES[-1]}, got {images!r}")
        self.model = model
        self._images = images
        own = openai.headers((api_key or "").strip() or None)
        self._server = ModelServer("openai", base_url, own, options, largest_reply=_LARGEST_REPLY)
        self.address = self._server.base_url
        self.ledger = self._server.ledger
        self._cache = cache
        self._lock = threading.Lock()
        self._most = 0
        """Maximum number of texts per request, learned from rejected requests. 0 if the maximum is unknown."""

    def __repr__(self) -> str:
        return f"Embedder({self._server.base_url!r}, {self.model!r})"

    @property
    def priced(self) -> bool:
        return self._server.priced(self.model)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, in order.

        Equal texts are sent only once, and cached texts aren't sent. If possible, one request contains all texts. With ``images="messages"``, each
        image is sent in a separate request.

        Raises:
            JudgeError: the server can't be called, or doesn't return a vector for each text.
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
        self._server.close()

    def _key(self, text: str) -> str:
        return hashlib.sha256(f"{self._server.base_url}\n{self.model}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()

    def _in_batches(self, texts: list[str], until: float) -> list[list[float]]:
        """Return one vector per text. While the server rejects batches as too large, halve the batch size, down to one text."""
        found: list[list[float]] = []
        while len(found) < len(texts):
            batch = texts[len(found) : len(found) + (self._most or len(texts))]
            if self._images == "messages":  # one image alone, or the texts before the next image
                batch = list(itertools.takewhile(lambda text: not isinstance(text, ImageReference), batch)) or batch[:1]
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
    """Return the request fields for texts and images. In Jina's format, each ``data:`` URI is sent without its prefix."""
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
        raise JudgeError(f"the embedding server didn't return one vector for each of {wanted} texts", "invalid_answer")
    if len({len(vector) for vector in vectors}) > 1:
        raise JudgeError("the embedding server returned vectors of different lengths", "invalid_answer")
    return vectors


# --- in this process

PREFIX = "local/"
_FILES = {
    "wordllama": ("weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json", "embedding.weight")
}
_FEATURE = "embeddings without a server"


class InProcessEmbedder(EmbedderModel):
    """Base class of embedders that run in this process free of charge. The first call loads the model."""

    def __init__(self, model: str) -> None:
        self.model = model
        self._lock = threading.Lock()
        self._is_read = False
        self.ledger = AccountLedger()

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, in order, normalized to length 1. For a text without words, it can be a zero vector."""
        start = SYSTEM_CLOCK.monotonic()
        with self._lock:
            if not self._is_read:
                self._read()
                self._is_read = True
        vectors = self._vectors(texts)
        self.ledger.add(
            Account("embed", "local", self.model, 0, SYSTEM_CLOCK.monotonic() - start, tokens_in(texts), 0, cost_usd=0.0,
                    price_source="local", charge_usd=0.0)
        )  # fmt: skip
        return vectors

    def clear_cache(self) -> None:
        """Do nothing, because in-process embedders don't cache vectors."""

    @abstractmethod
    def _read(self) -> None:
        """Load the model."""

    @abstractmethod
    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text."""


class LocalEmbedder(InProcessEmbedder):
    """Embedder that uses a model from an installed package and downloads nothing. Thread-safe. ``local/wordllama`` (extra
    ``[embed]``) has 256 dimensions and works best for English. The first call loads the model (18 MB).
    """

    def __init__(self, model: str = "local/wordllama") -> None:
        package = model.removeprefix(PREFIX)
        if not model.startswith(PREFIX) or package not in _FILES:
            raise ConfigError(f"model: must be {' or '.join(PREFIX + name for name in _FILES)}, got {model!r}")
        super().__init__(model)
        self._package = package
        self._tokenizers = require("tokenizers", feature=_FEATURE, extra="embed")
        self._tensors = require("safetensors.numpy", feature=_FEATURE, extra="embed")
        found = importlib.util.find_spec(package)  # not imported: only two of its files are needed
        if found is None or found.origin is None:
            require(package, feature=_FEATURE, extra="embed")
            raise ConfigError(f"model: files of {model!r} not found in the package {package}. Reinstall it")
        self._folder = Path(found.origin).parent
        self._table: Any = None
        self._tokenizer: Any = None

    def __repr__(self) -> str:
        return f"LocalEmbedder({self.model!r})"

    def _read(self) -> None:
        weights, words, name = _FILES[self._package]
        tokenizer = self._tokenizers.Tokenizer.from_file(str(self._folder / words))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._tokenizer = tokenizer
        self._table = self._tensors.load_file(str(self._folder / weights))[name]

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        vectors: list[list[float]] = []
        for pieces in self._tokenizer.encode_batch(list(texts), add_special_tokens=False):
            mean = self._table[pieces.ids].mean(axis=0, dtype=np.float32) if pieces.ids else np.zeros(self._table.shape[1])
            length = float(np.linalg.norm(mean))
            vectors.append((mean / length if length else mean).tolist())
        return vectors


# --- images and texts

CLIP = "local/clip"
_LONGEST_TEXT = 77
_EDGE = 224
"""Default maximum text length in tokens, and default image size in pixels. Both values are from the first CLIP models."""
_OF_TEXTS = ("text_embeds", "text_features", "pooler_output")
_OF_IMAGES = ("image_embeds", "image_features", "pooler_output")


class ClipEmbedder(InProcessEmbedder):
    """Embedder with comparable vectors for images and texts. Thread-safe. The first call loads the model from ``folder``."""

    def __init__(self, folder: str) -> None:
        super().__init__(CLIP)
        self._runtime = require("onnxruntime", feature="embeddings of images in this process", extra="clip")
        self._tokenizers = require("tokenizers", feature="embeddings of images in this process", extra="clip")
        require("PIL.Image", feature="embeddings of images in this process", extra="clip")
        self._folder = Path(folder)
        self._text_file, self._image_file = self._file_named("text_model.onnx"), self._file_named("vision_model.onnx")
        for name in ("tokenizer.json", "preprocessor_config.json"):
            if not (self._folder / name).is_file():
                raise ConfigError(f"path: {name} not found in {folder!r}")

    def __repr__(self) -> str:
        return f"ClipEmbedder({str(self._folder)!r})"

    def _file_named(self, name: str) -> Path:
        for file in (self._folder / part / one for one in (name, "model.onnx") for part in ("", "onnx")):
            if file.is_file():
                return file
        raise ConfigError(f"path: neither {name} nor model.onnx found in {str(self._folder)!r} or its subfolder onnx")

    def _read(self) -> None:
        options = self._runtime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        sessions = {
            file: self._runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
            for file in {self._text_file, self._image_file}
        }
        self._texts, self._images = sessions[self._text_file], sessions[self._image_file]
        self._tokenizer = self._tokenizers.Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        padding = self._tokenizer.padding or {}
        longest = padding.get("length") or _LONGEST_TEXT
        self._tokenizer.enable_truncation((self._tokenizer.truncation or {}).get("max_length", longest))
        self._tokenizer.enable_padding(**padding)
        self._how = json.loads((self._folder / "preprocessor_config.json").read_text(encoding="utf-8"))

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        found: list[list[float]] = []
        for text in texts:  # one by one: text lengths vary a lot, and images are large
            is_image = isinstance(text, ImageReference)
            if is_image and "://" not in text and not text.startswith("data:"):
                raise JudgeError("embedder: an image needs a URL or embedded data, got only an ID", "unsupported_media")
            if is_image:
                vector = self._run(self._images, {"pixel_values": self._pixels(text)}, _OF_IMAGES)
            else:
                pieces = self._tokenizer.encode(text)
                places = list(range(len(pieces.ids)))
                ids = {"input_ids": pieces.ids, "attention_mask": pieces.attention_mask, "position_ids": places}
                vector = self._run(self._texts, {name: np.asarray([one], np.int64) for name, one in ids.items()}, _OF_TEXTS)
            length = float(np.linalg.norm(vector))
            found.append((vector / length if length else vector).tolist())
        return found

    def _run(self, session: Any, given: dict[str, Any], wanted: Sequence[str]) -> Any:
        """Run the ONNX model and return one vector. Model inputs that aren't in ``given`` get minimal placeholders."""
        inputs = {}
        for one in session.get_inputs():
            smallest = np.zeros((1, 3, *self._edge()), np.float32) if one.name == "pixel_values" else np.ones((1, 1), np.int64)
            inputs[one.name] = given.get(one.name, smallest)
        outputs = [one.name for one in session.get_outputs()]
        name = next((one for one in wanted if one in outputs), outputs[0])
        found = np.asarray(session.run([name], inputs)[0], np.float32)
        if found.ndim != 2:
            raise JudgeError("embedder: the model's output isn't one vector for each input", "invalid_answer")
        return found[0]

    def _edge(self) -> tuple[int, int]:
        size: Any = self._how.get("crop_size" if self._how.get("do_center_crop") else "size") or _EDGE
        if not isinstance(size, dict):
            return int(size), int(size)
        short: int = size.get("shortest_edge") or _EDGE
        return int(size.get("height", short)), int(size.get("width", short))

    def _pixels(self, reference: str) -> Any:
        height, width = self._edge()
        picture = decoded(content_of(reference, "image"))
        if self._how.get("do_center_crop"):
            scale = max(height / picture.height, width / picture.width)
            picture = picture.resize(
                (max(width, round(picture.width * scale)), max(height, round(picture.height * scale))),
                self._how.get("resample", 3),
            )
            left, top = (picture.width - width) // 2, (picture.height - height) // 2
            picture = picture.crop((left, top, left + width, top + height))
        else:
            picture = picture.resize((width, height), self._how.get("resample", 3))
        pixels = np.asarray(picture, np.float32) * self._how.get("rescale_factor", 1 / 255)
        if self._how.get("do_normalize", True):
            pixels = (pixels - np.asarray(self._how.get("image_mean", [0.5] * 3))) / np.asarray(
                self._how.get("image_std", [0.5] * 3)
            )
        return pixels.transpose(2, 0, 1)[None].astype(np.float32)
