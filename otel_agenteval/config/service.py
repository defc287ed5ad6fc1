"""The options of a model server, its limits and its prices, shared by judge and embedder, and the section ``embedder``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from .otlp import Headers
from .section import NO_ENTRIES, Section
from .types import Before, Count, Duration, FilePath, Kind, Secret, Text, Url, finite_number


def _prices(value: Any) -> Any:
    """Parse prices by model: ``{qwen3: {input: 0.2, output: 0.6}}``."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) and _is_price(price) for name, price in value.items()):
        raise ValueError(
            "must be a mapping of models to prices in USD per million tokens. Example: {qwen3: {input: 0.2, output: 0.6}}"
        )
    return {name: {key: float(amount) for key, amount in price.items()} for name, price in value.items()}


def _is_price(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and {"input", "output"} <= value.keys() <= {"input", "output", "cached_input"}
        and all(isinstance(amount, (int, float)) and finite_number(amount) is not None for amount in value.values())
    )


class ServiceOptions(Section):
    """A model server. It is used if both ``base_url`` and ``model`` are set."""

    base_url: Url | None = None
    """Address of the server, including the version: ``http://127.0.0.1:11434/v1``. Null means no server."""
    model: Text | None = None
    """Name of the model at the server."""
    api_key: Secret | None = None
    """API key of the server, as ``${env:NAME}``."""
    headers: Headers = NO_ENTRIES
    """Additional headers of each request, for example for a gateway: ``{x-team: search}``."""
    timeout: Duration = 30.0
    """Maximum seconds of one attempt."""
    deadline: Duration = 120.0
    """Maximum seconds of one call, including retries and waiting."""
    max_concurrency: Count = 8
    """Maximum concurrent calls. Others wait."""
    requests_per_minute: Count | None = None
    """Maximum requests per minute. Null means no limit."""
    tokens_per_minute: Count | None = None
    """Maximum input and output tokens per minute. Null means no limit."""
    prices: Annotated[dict[str, dict[str, float]], Before(_prices), Kind("mapping of prices")] = NO_ENTRIES
    """USD per million tokens, for models without a list price: ``{qwen3: {input: 0.2, output: 0.6, cached_input: 0.1}}``. ``cached_input`` is optional."""


class EmbedderOptions(ServiceOptions):
    """The embedding model of ``embed_`` metrics: an OpenAI-compatible server, or a model in this process. Without one, the metrics are skipped."""

    model: Text | None = None
    """Name of the model at the server. Without ``base_url``, a model in this process: ``local/wordllama`` (extra ``[embed]``) or ``local/clip`` (extra ``[clip]``)."""
    path: FilePath | None = None
    """Folder of ``local/clip``, a CLIP or SigLIP model as ONNX files, see [media](../guides/evaluate-media.md#use-a-local-clip-model)."""
    images: Literal["text", "object", "messages"] = "text"
    """Format of images in requests: ``text`` (``data:`` URIs), ``object`` (``{"image": ...}``, as for Jina), or ``messages`` (one image per request, as for vLLM)."""
