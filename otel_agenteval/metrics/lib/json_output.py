"""Parse outputs that should be JSON documents."""

from __future__ import annotations

from typing import Any

from ...core import jsonio
from .values import canonical

SIZE_LIMIT = 1 << 20
"""Maximum size of a parsed output in bytes. Longer outputs are skipped with ``too_long``."""


def too_long(text: str) -> bool:
    """Return True if an output is too long to parse."""
    if text.isascii() or len(text) > SIZE_LIMIT:
        return len(text) > SIZE_LIMIT
    return len(text.encode("utf-8", "surrogatepass")) > SIZE_LIMIT


def object_of(text: str) -> dict[str, Any] | None:
    """Parse a text as a JSON object, or return None if it isn't one."""
    try:
        value = jsonio.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def written(value: Any) -> str:
    """Return a text unchanged, and any other value as canonical JSON."""
    return value if isinstance(value, str) else canonical(value)
