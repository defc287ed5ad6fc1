"""Section ``embedder``: the server or model that ``embed_`` metrics ask for vectors."""

from __future__ import annotations

from typing import Literal

from .service import ServiceOptions
from .types import FilePath, Text


class EmbedderOptions(ServiceOptions):
    """The OpenAI-compatible server, or the model in this process, that ``embed_`` metrics get vectors from; without either they are skipped."""

    model: Text | None = None
    """The model's name there; without ``base_url`` a model in this process: ``local/wordllama`` (extra ``[embed]``) or ``local/clip`` (extra ``[clip]``)."""
    path: FilePath | None = None
    """Folder of the model ``local/clip``: a CLIP or SigLIP model as ONNX files, see [media](../guides/evaluate-media.md#use-a-local-clip-model)."""
    images: Literal["text", "object", "messages"] = "text"
    """How a server is sent images: as texts (``data:`` uris), as objects ``{"image": ...}`` beside ``{"text": ...}`` (Jina and others), or as ``messages``, one image a request (vLLM)."""
