"""Estimate the energy of model calls, because neither spans nor providers report it."""

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
"""Provider names in spans, mapped to those of EcoLogits."""
_ALL_PROVIDERS = ("openai", "anthropic", "google_genai", "mistralai", "cohere", "huggingface_hub")

_MOST_CALLS = 500
"""Maximum number of model calls in a turn with an estimate, at about a millisecond each."""

Estimate = Callable[[str, str, int, float], "float | None"]


def estimated_kwh(turn: Turn) -> float | None:
    """Return the energy of all model calls of a turn in kWh, or None if unknown.

    The energy is unknown if EcoLogits isn't installed or one call has no estimate, because a partial sum would be too low. A
    failed call without output tokens counts as 0.
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
    """Yield the provider and model names to try, with and without a gateway's prefix."""
    known = _PROVIDERS.get((provider or "").lower())
    for name in dict.fromkeys((model, model.rpartition("/")[2])):
        for candidate in (known,) if known else _ALL_PROVIDERS:
            yield candidate, name


@lru_cache(maxsize=1)
def _library() -> Estimate | None:
    """Return the estimate function of EcoLogits, or None if it isn't installed."""
    loggers = logging.getLoggerClass()
    try:
        tracers = require("ecologits.tracers.utils", feature="an energy estimate", extra="sustainability")
        repository = require("ecologits.model_repository", feature="an energy estimate", extra="sustainability")
    except MissingExtra:
        return None
    finally:
        logging.setLoggerClass(loggers)  # importing the library replaces the logger class of the whole process
    logger = logging.getLogger("ecologits")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.ERROR)  # it warns about each model of unpublished size, which "estimated" already states

    def estimate(provider: str, model: str, output_tokens: int, seconds: float) -> float | None:
        if repository.models.find_model(provider=provider, model_name=model) is None:
            return None
        try:
            return _middle(tracers.llm_impacts(provider, model, output_tokens, seconds))
        except Exception:  # the library's formulas reject some numbers; then there is no estimate
            return None

    return estimate


def _middle(impacts: Any) -> float | None:
    """Return the energy in kWh, or the middle of its range."""
    if impacts.energy is None:
        return None
    value = impacts.energy.value
    kwh = float(value) if isinstance(value, (int, float)) else (value.min + value.max) / 2
    return kwh if math.isfinite(kwh) and kwh >= 0 else None
