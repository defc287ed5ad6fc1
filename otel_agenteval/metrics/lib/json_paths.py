"""Places in JSON documents: the value at a path, and where two documents first differ."""

from __future__ import annotations

import itertools
import re
from typing import Any

from .excerpt import excerpt
from .values import json_equal

ABSENT = object()
"""The value at a path that leads nowhere."""

_INDEX = re.compile(r"\[([0-9]{1,9})\]")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHOWN_KEY = 50
_SHOWN_STEPS = 20

_Place = tuple[Any, "str | int"] | None
"""A place as a linked list from its end: the place that it is in, and its key or index there."""


def lookup(document: Any, path: str) -> Any:
    """The value at a dotted path (``a.b``, ``a.0``, ``a[0]``, ``$.a``) or :data:`ABSENT`.

    A key of the document that is spelled exactly like the path wins.
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
    """JSONPath of the first place (in the expected document's order) where the documents differ; None when they are equal.

    With ``ignore_list_order`` lists are compared as multisets, and the place is the list's own: no element is to blame.
    Walks with its own stack, so that no depth of nesting is too deep.
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
    """A number that two values share when they are equal up to the order of lists; ``forms`` is what was numbered so far."""
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
            inner = done[len(done) - len(item) :]  # the last first: the stack turned them round
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
