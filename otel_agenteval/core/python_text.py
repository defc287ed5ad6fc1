"""Python as text, what ``repr`` and ``str`` wrote: read without running it, in time that grows with its length."""

from __future__ import annotations

import ast
import re
from typing import Any, Literal

from .wellformed import plain

LONGEST = 1_000_000
"""Characters of a text that is read at all."""
_F_STRING = re.compile(r"(?<![A-Za-z0-9_])(?:[rR]?[fF]|[fF][rR])['\"]")
_MOST_FIELDS = 100_000_000
"""Braces times characters of a text with f-strings: Python's parser copies what is left of one at each of its fields."""


def parse(text: str, mode: Literal["eval", "exec"] = "eval", name: str = "<text>") -> Any:
    """Return the syntax tree of an expression, or of a module with ``mode`` ``exec``.

    Raises:
        ValueError: not Python, of the version that runs this, or too much of it.
    """
    if len(text) > LONGEST or (text.count("{") * len(text) > _MOST_FIELDS and _F_STRING.search(text) is not None):
        raise ValueError("too much to parse")
    try:
        return ast.parse(text, name, mode)
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"not Python: {type(error).__name__}") from None


def literal(source: str | ast.expr) -> Any:
    """Return the value that a literal, or the tree of one, shows, with JSON types only.

    Raises:
        ValueError: not a literal, or too much of one.
    """
    try:
        return plain(ast.literal_eval(parse(source.lstrip(" \t")) if isinstance(source, str) else source))
    except (MemoryError, RecursionError, TypeError) as error:  # nested too deep, or a dictionary with a list as a key
        raise ValueError(f"not a literal: {type(error).__name__}") from None
