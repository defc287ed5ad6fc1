"""Wire formats of models, one module each: build a request, read an answer, nothing else.

A model's name may begin with its provider's (``anthropic/claude-…``, ``gemini/…``). Where the name itself has such a beginning,
as at proxies and routers, the provider is given beside it and the name is sent as it is.
"""

from __future__ import annotations

from ....core.errors import ConfigError
from . import anthropic, bedrock, gemini, openai, responses
from .base import Answer, Form, Media, Message, Provider, Question, Request, Usage

PROVIDERS: dict[str, Provider] = {
    "openai": openai,
    "responses": responses,
    "anthropic": anthropic,
    "gemini": gemini,
    "bedrock": bedrock,
}

__all__ = ["PROVIDERS", "Answer", "Form", "Media", "Message", "Provider", "Question", "Request", "Usage", "chosen"]


def chosen(model: str, provider: str | None) -> tuple[str, str]:
    """The provider's name and the model's name there; without any word on the provider it is OpenAI's chat completions.

    Raises:
        ConfigError: no model, or a provider that is not known.
    """
    if not isinstance(model, str) or not model.strip():
        raise ConfigError("model is required")
    if provider is None:
        prefix, slash, name = model.partition("/")
        return (prefix, name) if slash and name and prefix in PROVIDERS else ("openai", model)
    if provider not in PROVIDERS:
        raise ConfigError(f"provider: {provider!r} is not allowed; it must be one of {', '.join(PROVIDERS)}")
    return provider, model
