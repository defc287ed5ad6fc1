"""Look up paths in JSON documents and find the first difference between two documents."""

from __future__ import annotations

import itertools
import re
from typing import Any

from .excerpt import excerpt
from .values import json_equal

ABSENT = object()
"""Result of a lookup if the path doesn't exist."""

_INDEX = re.compile(r"\[([0-9]{1,9})\]")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHOWN_KEY = 50
_SHOWN_STEPS = 20

_Place = tuple[Any, "str | int"] | None
"""Position in a document as a linked list: the parent's position and the key or index."""


def lookup(document: Any, path: str) -> Any:
    """Return the value at a dotted path, or :data:`ABSENT`.

    Accepts ``a.b``, ``a.0``, ``a[0]`` and ``$.a``. A key that is spelled exactly like the path takes precedence.
    """
    if isinstance(document, dict) and path in document:
        return document[path]
    found = document
    for step in _INDEX.sub(r".\1", path).removeprefix("$").removeprefix(".").split("."):
        if isinstance(found, dict):
            found = found.get(step, ABSENT)
        elif isinstance(found, list) and step.isascii() and step.isdigit() and len(step) < 10 and int(step) < len(found):
            found = found[int(step)]
        else:
            return ABSENT
    return found


def first_difference(expected: Any, actual: Any, *, ignore_list_order: bool) -> str | None:
    """Return the JSONPath of the first difference between two documents, or None if equal.

    The order is that of the expected document. With ``ignore_list_order``, lists are compared as multisets, and the path is that
    of the list. The walk isn't recursive, so nesting can have any depth.
    """
    pending: list[tuple[Any, Any, _Place]] = [(expected, actual, None)]
    while pending:
        one, other, place = pending.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            keys = itertools.chain(one, (key for key in other if key not in one))
            inner = [(one.get(key, ABSENT), other.get(key, ABSENT), (place, key)) for key in keys]
            pending.extend(reversed(inner))
        elif isinstance(one, list) and isinstance(other, list) and not ignore_list_order:
            pairs = itertools.zip_longest(one, other, fillvalue=ABSENT)
            pending.extend(reversed([(left, right, (place, i)) for i, (left, right) in enumerate(pairs)]))
        elif isinstance(one, list) and isinstance(other, list):
            forms: dict[Any, int] = {}
            if _form(one, forms) != _form(other, forms):
                return _written(place)
        elif one is ABSENT or other is ABSENT or not json_equal(one, other):
            return _written(place)
    return None


def _form(value: Any, forms: dict[Any, int]) -> int:
    """Return a number that two values share if they are equal except for list order.

    ``forms`` holds the numbers assigned so far.
    """
    pending: list[tuple[Any, bool]] = [(value, False)]
    done: list[int] = []
    while pending:
        item, inner_done = pending.pop()
        form: Any
        if not isinstance(item, (dict, list)):
            number = isinstance(item, (int, float)) and not isinstance(item, bool)
            form = ("number" if number else type(item).__name__, item)
        elif not inner_done:
            pending.append((item, True))
            pending.extend((inner, False) for inner in (item.values() if isinstance(item, dict) else item))
            continue
        else:
            inner = done[len(done) - len(item) :]  # in reverse order, because of the stack
            del done[len(done) - len(item) :]
            form = frozenset(zip(reversed(item), inner, strict=True)) if isinstance(item, dict) else tuple(sorted(inner))
        done.append(forms.setdefault(form, len(forms)))
    return done[0]


def _written(place: _Place) -> str:
    steps = []
    while place is not None:
        place, key = place
        if isinstance(key, int):
            steps.append(f"[{key}]")
        elif _PLAIN_KEY.fullmatch(key):
            steps.append(f".{excerpt(key, _SHOWN_KEY)}")
        else:
            steps.append(f"[{excerpt(key, _SHOWN_KEY)!r}]")
    return "$" + "".join(steps[: -_SHOWN_STEPS - 1 : -1])
