"""Wire formats of model providers. Each module builds requests and parses replies.

A model name can start with its provider (``anthropic/claude-…``, ``gemini/…``). If the server's own model names contain such a
prefix, also set ``provider``, so that the model name is sent unchanged.
"""

from __future__ import annotations

from ....core.errors import ConfigError
from . import anthropic, bedrock, gemini, openai, responses
from .base import Provider

PROVIDERS: dict[str, Provider] = {
    "openai": openai,
    "responses": responses,
    "anthropic": anthropic,
    "gemini": gemini,
    "bedrock": bedrock,
}


def chosen(model: str, provider: str | None) -> tuple[str, str]:
    if not isinstance(model, str) or not model.strip():
        raise ConfigError("model: required")
    if provider is None:
        prefix, slash, name = model.partition("/")
        return (prefix, name) if slash and name and prefix in PROVIDERS else ("openai", model)
    if provider not in PROVIDERS:
        raise ConfigError(f"provider: must be one of {', '.join(PROVIDERS)}, got {provider!r}")
    return provider, model
