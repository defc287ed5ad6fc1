"""How much energy model calls took, by a published estimate: which neither spans nor providers report."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from ...core.errors import MissingExtra
from ...core.extras import require
from ...core.turn import LlmCall, Turn

_PROVIDERS = {
    "anthropic": "anthropic", "cohere": "cohere", "hugging_face": "huggingface_hub", "huggingface": "huggingface_hub",
    "huggingface_hub": "huggingface_hub", "mistral": "mistralai", "mistral_ai": "mistralai", "mistralai": "mistralai",
    "openai": "openai", "azure": "openai", "azure.ai.openai": "openai", "az.ai.openai": "openai", "azure_openai": "openai",
    "gcp.gemini": "google_genai", "gcp.gen_ai": "google_genai", "gcp.vertex_ai": "google_genai", "gemini": "google_genai",
    "google": "google_genai", "google_genai": "google_genai", "vertex_ai": "google_genai", "vertexai": "google_genai",
}  # fmt: skip
"""Names that spans give providers, and those of the estimate."""
_ALL_PROVIDERS = ("openai", "anthropic", "google_genai", "mistralai", "cohere", "huggingface_hub")

_MOST_CALLS = 500
"""Above it there is no estimate: each takes about a millisecond."""

Estimate = Callable[[str, str, int, float], "float | None"]


def estimated_kwh(turn: Turn) -> float | None:
    """The energy of all model calls of the turn; None when one of them cannot be estimated, or without the library.

    A sum over only some of the calls would be too low, so there is none. A failed call that made no tokens counts as 0.
    """
    calls = [call for call in turn.llm_calls if call.output_tokens is not None or call.error is None]
    if not 0 < len(calls) <= _MOST_CALLS or any(call.output_tokens is None or not call.model for call in calls):
        return None
    estimate = _library()
    if estimate is None:
        return None
    total = 0.0
    for call in calls:
        energy = _of_call(call, estimate)
        if energy is None:
            return None
        total += energy
    return total


def _of_call(call: LlmCall, estimate: Estimate) -> float | None:
    seconds = math.inf if call.duration_s is None else call.duration_s
    for provider, model in _names(call.provider, call.model or ""):
        energy = estimate(provider, model, call.output_tokens or 0, seconds)
        if energy is not None:
            return energy
    return None


def _names(provider: str | None, model: str) -> Iterator[tuple[str, str]]:
    """How the estimate might know a model: a gateway's ``openai/gpt-x`` is tried whole and without its prefix."""
    known = _PROVIDERS.get((provider or "").lower())
    for name in dict.fromkeys((model, model.rpartition("/")[2])):
        for candidate in (known,) if known else _ALL_PROVIDERS:
            yield candidate, name


@lru_cache(maxsize=1)
def _library() -> Estimate | None:
    """EcoLogits' estimate, or None where it is not installed."""
    loggers = logging.getLoggerClass()
    try:
        tracers = require("ecologits.tracers.utils", feature="an energy estimate", extra="sustainability")
        repository = require("ecologits.model_repository", feature="an energy estimate", extra="sustainability")
    except MissingExtra:
        return None
    finally:
        logging.setLoggerClass(loggers)  # the library sets its own for the whole process when it is imported
    logger = logging.getLogger("ecologits")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.ERROR)  # it warns of every model whose size is not published; "estimated" says as much

    def estimate(provider: str, model: str, output_tokens: int, seconds: float) -> float | None:
        if repository.models.find_model(provider=provider, model_name=model) is None:
            return None
        try:
            return _middle(tracers.llm_impacts(provider, model, output_tokens, seconds))
        except Exception:  # numbers that the library's formulas do not take: no estimate is an answer too
            return None

    return estimate


def _middle(impacts: Any) -> float | None:
    """The energy in kWh; the middle where it is given as a range."""
    if impacts.energy is None:
        return None
    value = impacts.energy.value
    kwh = float(value) if isinstance(value, (int, float)) else (value.min + value.max) / 2
    return kwh if math.isfinite(kwh) and kwh >= 0 else None
