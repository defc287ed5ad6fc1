"""Texts that were made from a template with named places (``Answer: {question}``), taken apart again."""

from __future__ import annotations

import re

PLACE = re.compile(r"\{([A-Za-z_]\w*)\}")
"""A place in a template."""


def places(template: str) -> list[str]:
    """The names of a template's places, in order."""
    return PLACE.findall(template)


def filled_in(template: str, text: str) -> dict[str, str] | None:
    """What stands in the places of a template in a text; None when the text was not made from it, or a place is named twice.

    Every fixed piece is found at its first place after the one before: no backtracking, so that no text takes long.
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
