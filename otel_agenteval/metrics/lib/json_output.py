"""Outputs that should be JSON documents: how long they may be, and how their values are written."""

from __future__ import annotations

from typing import Any

from ...core import jsonio
from .values import canonical

SIZE_LIMIT = 1 << 20
"""Bytes of output that are parsed; longer ones are skipped with ``too_long``."""


def too_long(text: str) -> bool:
    """Whether an output is too long to be parsed."""
    if text.isascii() or len(text) > SIZE_LIMIT:
        return len(text) > SIZE_LIMIT
    return len(text.encode("utf-8", "surrogatepass")) > SIZE_LIMIT


def object_of(text: str) -> dict[str, Any] | None:
    """The JSON object that a text is, or None."""
    try:
        value = jsonio.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def written(value: Any) -> str:
    """A value as text: a text as it is, anything else as canonical JSON."""
    return value if isinstance(value, str) else canonical(value)
