"""Extracts values from text that was produced from a template such as ``Answer: {question}``."""

from __future__ import annotations

import re

PLACE = re.compile(r"\{([A-Za-z_]\w*)\}")
"""Matches a placeholder in a template."""


def places(template: str) -> list[str]:
    return PLACE.findall(template)


def filled_in(template: str, text: str) -> dict[str, str] | None:
    """Return the placeholders' values in a text from the template, or None if it doesn't match or a placeholder occurs twice.
    Each fixed part matches at its first position after the previous one, without backtracking, so in linear time.
    """
    names, fixed = places(template), PLACE.split(template)[::2]
    if len(set(names)) < len(names) or not text.startswith(fixed[0]):
        return None
    if not names:
        return {} if text == template else None
    at, found = len(fixed[0]), []
    for piece in fixed[1:-1]:
        end = text.find(piece, at) if piece else at
        if end < 0:
            return None
        found.append(text[at:end])
        at = end + len(piece)
    if not text.endswith(fixed[-1]) or len(text) - len(fixed[-1]) < at:
        return None
    return dict(zip(names, [*found, text[at : len(text) - len(fixed[-1])]], strict=True))
