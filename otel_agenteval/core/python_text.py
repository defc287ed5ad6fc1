"""Parsers for Python source and for the output of ``repr`` and ``str``. They run no code and take linear time."""

from __future__ import annotations

import ast
import re
from typing import Any, Literal

from . import jsonio
from .wellformed import plain

LONGEST = 1_000_000
"""Longest text to parse, in characters."""
_F_STRING = re.compile(r"(?<![A-Za-z0-9_])(?:[rR]?[fF]|[fF][rR])['\"]")
_MOST_FIELDS = 100_000_000
"""Limit for braces × characters of a text with f-strings, each of whose fields Python's parser copies with all that follows."""


def parse(text: str, mode: Literal["eval", "exec"] = "eval", name: str = "<text>") -> Any:
    """Return the syntax tree of an expression or, in mode ``exec``, a module. Raises a ValueError if it is invalid or too long."""
    if len(text) > LONGEST or (text.count("{") * len(text) > _MOST_FIELDS and _F_STRING.search(text) is not None):
        raise ValueError("text is too long to parse")
    try:
        return ast.parse(text, name, mode)
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"not Python: {type(error).__name__}") from None


def parsed(text: str) -> Any:
    """Return the value of JSON, or of a list or object as Python writes it, or the text itself."""
    for parse in (jsonio.loads, literal) if text.lstrip()[:1] in ("{", "[") else (jsonio.loads,):
        try:
            return parse(text)
        except ValueError:
            pass
    return text


def literal(source: str | ast.expr) -> Any:
    """Return the value of a literal, or of its syntax tree, converted to JSON types. Raises a ValueError for other texts."""
    try:
        return plain(ast.literal_eval(parse(source.lstrip(" \t")) if isinstance(source, str) else source))
    except (MemoryError, RecursionError, TypeError) as error:  # nested too deeply, or a dictionary with a list as a key
        raise ValueError(f"not a literal: {type(error).__name__}") from None
