"""Section ``embedder``: the server or model that ``embed_`` metrics ask for vectors."""

from __future__ import annotations

from .service import ServiceOptions
from .types import Text


class EmbedderOptions(ServiceOptions):
    """The server that ``embed_`` metrics ask for vectors, OpenAI-compatible, or a model in this process; without either they are skipped."""

    model: Text | None = None
    """The model's name there; ``local/wordllama`` without ``base_url`` is one in this process (extra ``[embed]``)."""
