"""What the sections of judge and embedder share: a model server, its limits and its prices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from .section import NO_ENTRIES, Section
from .types import Before, Count, Duration, Kind, Text, Url, finite_number


def _prices(value: Any) -> Any:
    """Prices by model: ``{qwen3: {input: 0.2, output: 0.6}}``."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) and _is_price(price) for name, price in value.items()):
        raise ValueError(
            "it must be a mapping of models to {input, output, cached_input}, USD per million tokens (the last may be left out)"
        )
    return {name: {key: float(amount) for key, amount in price.items()} for name, price in value.items()}


def _is_price(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and {"input", "output"} <= value.keys() <= {"input", "output", "cached_input"}
        and all(isinstance(amount, (int, float)) and finite_number(amount) is not None for amount in value.values())
    )


class ServiceOptions(Section):
    """A model server. It is used when it has an address and a model."""

    base_url: Url | None = None
    """Address of the server, up to and including the version: ``http://127.0.0.1:11434/v1``. Null means that there is none."""
    model: Text | None = None
    """The model's name there."""
    api_key: Text | None = None
    """Key of the server, as ``${env:NAME}``."""
    timeout: Duration = 30.0
    """Seconds that one attempt may take."""
    deadline: Duration = 120.0
    """Seconds that one question may take, including retries and waiting in line."""
    max_concurrency: Count = 8
    """Maximum questions at once; more wait."""
    requests_per_minute: Count | None = None
    """Maximum requests per minute; null means no limit."""
    tokens_per_minute: Count | None = None
    """Maximum input and output tokens per minute; null means no limit."""
    prices: Annotated[dict[str, dict[str, float]], Before(_prices), Kind("mapping of prices")] = NO_ENTRIES
    """USD per million tokens by model, ``{qwen3: {input: 0.2, output: 0.6, cached_input: 0.1}}``, where the table of list prices has none."""
