"""Compare and format values of any type by the rules of JSON."""

from __future__ import annotations

import json
from typing import Annotated, Any

from annotated_types import MinLen

from ...core import jsonio


class _Stripped:
    """A type for texts without surrounding space, for use in annotations of parameters.

    Pydantic calls :meth:`__get_pydantic_core_schema__`.
    """

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: Any) -> Any:
        from pydantic_core.core_schema import str_schema

        return str_schema(strip_whitespace=True)


Words = Annotated[str, _Stripped, MinLen(1)]


def json_equal(left: Any, right: Any) -> bool:
    """Return True if two values are structurally equal.

    The order of keys doesn't matter, but the order of lists does. ``1`` equals ``1.0``, and ``True`` differs from ``1``. The
    comparison isn't recursive, so nesting can have any depth.
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


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=repr)


def canonical(value: Any) -> str:
    """Return a value as JSON with sorted keys and no spaces.

    Values that are equal as JSON have the same text, except for ``1`` and ``1.0``.
    """
    try:
        return _CANONICAL.encode(value)
    except (TypeError, ValueError, RecursionError):  # keys of mixed types, cycles, too deep
        return jsonio.dumps(value)


def rendered(value: Any) -> str:
    """Return a configured value as a search text: ``5.0`` → ``5``, ``True`` → ``true``."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return jsonio.text_of(value)
