"""Section ``embedder``: the embedding model of ``embed_`` metrics."""

from __future__ import annotations

from typing import Literal

from .service import ServiceOptions
from .types import FilePath, Text


class EmbedderOptions(ServiceOptions):
    """The embedding model of ``embed_`` metrics: an OpenAI-compatible server, or a model in this process. Without one, the metrics are skipped."""

    model: Text | None = None
    """Name of the model at the server. Without ``base_url``, a model in this process: ``local/wordllama`` (extra ``[embed]``) or ``local/clip`` (extra ``[clip]``)."""
    path: FilePath | None = None
    """Folder of ``local/clip``, a CLIP or SigLIP model as ONNX files, see [media](../guides/evaluate-media.md#use-a-local-clip-model)."""
    images: Literal["text", "object", "messages"] = "text"
    """Format of images in requests: ``text`` (``data:`` URIs), ``object`` (``{"image": ...}``, as for Jina), or ``messages`` (one image per request, as for vLLM)."""
