"""Comparing and writing values of any type, the way JSON sees them."""

from __future__ import annotations

import json
from typing import Annotated, Any

from annotated_types import MinLen

from ...core import jsonio


class _Stripped:
    """A text without the space around it. pydantic asks it for its schema, where a parameter is given."""

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: Any) -> Any:
        from pydantic_core.core_schema import str_schema

        return str_schema(strip_whitespace=True)


Words = Annotated[str, _Stripped, MinLen(1)]
"""A configured text that says something."""


def json_equal(left: Any, right: Any) -> bool:
    """Structural equality: key order is ignored, list order counts, ``1 == 1.0``, and ``True != 1``.

    Walks with its own stack, so that no depth of nesting is too deep.
    """
    pending = [(left, right)]
    while pending:
        one, other = pending.pop()
        if isinstance(one, dict):
            if not isinstance(other, dict) or one.keys() != other.keys():
                return False
            pending.extend((inner, other[key]) for key, inner in one.items())
        elif isinstance(one, (list, tuple)):
            if not isinstance(other, (list, tuple)) or len(one) != len(other):
                return False
            pending.extend(zip(one, other, strict=True))
        elif not _leaves_equal(one, other):
            return False
    return True


def _leaves_equal(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, (str, int, float)) or one is None:
        return bool(one == other)
    return one is other or repr(one) == repr(other)  # not JSON, so its == could do anything


def canonical(value: Any) -> str:
    """A text that is the same for values that are equal as JSON (up to ``1`` and ``1.0``): sorted keys, no spaces."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), default=repr)
    except (TypeError, ValueError, RecursionError):  # keys of mixed types, cycles, too deep
        return jsonio.dumps(value)


def rendered(value: Any) -> str:
    """A configured value as the text to look for: ``5.0`` → ``5``, ``True`` → ``true``, text as it is."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return jsonio.text_of(value)
