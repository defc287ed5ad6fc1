"""Client of OpenAI's moderation endpoint, which returns the categories of a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from .providers import parsing
from .providers.base import HttpRequest

Endpoint = Literal["chat", "moderations"]
ENDPOINTS: tuple[Endpoint, ...] = ("chat", "moderations")
STAGE = "moderation"


def request(model: str, text: str) -> HttpRequest:
    return HttpRequest("/moderations", {"model": model, "input": text})


def reply_in(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a response as a judge's reply, ``{flags: [{code, description, confidence}]}``."""
    results = list(parsing.mappings(body.get("results")))
    if not results or not all(_is_verdict(result) for result in results):
        raise parsing.no_answer("moderations")
    flags = [
        {"code": code, "description": None, "confidence": parsing.mapping(result.get("category_scores")).get(code)}
        for result in results
        for code, is_flagged in result["categories"].items()
        if is_flagged is True
    ]
    return {"flags": flags}


def _is_verdict(result: Mapping[str, Any]) -> bool:
    """Return True if a result has a boolean for each category, and one of them if it is flagged."""
    categories = result.get("categories")
    if not isinstance(categories, Mapping) or not any(isinstance(is_in, bool) for is_in in categories.values()):
        return False
    if not all(is_in is None or isinstance(is_in, bool) for is_in in categories.values()):
        return False
    return result.get("flagged") is not True or any(categories.values())
