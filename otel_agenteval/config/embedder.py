"""Section ``embedder``: the server or model that ``embed_`` metrics ask for vectors."""

from __future__ import annotations

from .service import ServiceOptions
from .types import Text


class EmbedderOptions(ServiceOptions):
    """The OpenAI-compatible server, or the model in this process, that ``embed_`` metrics get vectors from; without either they are skipped."""

    model: Text | None = None
    """The model's name there; ``local/wordllama`` without ``base_url`` is one in this process (extra ``[embed]``)."""
