"""Count the steps that the validation of a value against a JSON Schema takes.

Nested references to alternatives can double the steps at each level.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
"""Keywords for references. Without them, the steps grow at most with the size of the schema times the size of the value."""
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("not", "if", "then", "else")
_OF_MEMBERS = ("additionalProperties", "unevaluatedProperties")
_OF_ITEMS = ("items", "additionalItems", "contains", "unevaluatedItems")


class TooManySteps(Exception):
    """A validation that exceeds its step limit."""


def check(schema: Any, value: Any, most: int) -> None:
    """Check that a validation doesn't exceed a step limit.

    Raises:
        TooManySteps: If it takes more than ``most`` steps, or they can't be counted.
    """
    try:
        _Count(schema, most).of(schema, value)
    except RecursionError:
        raise TooManySteps from None


class _Count:
    def __init__(self, root: Any, most: int) -> None:
        self._root = root
        self._most = most
        self._known: dict[tuple[int, int], int] = {}
        self._anchors = {anchor: inner for inner in _objects(root) for anchor in _anchors_of(inner)}

    def of(self, schema: Any, value: Any) -> int:
        """Return the steps of one schema with one value.

        Each pair is counted once, however often it is validated.
        """
        if not isinstance(schema, dict):
            return 1
        pair = id(schema), id(value)
        known = self._known.get(pair)
        if known is None:
            self._known[pair] = 0  # a cycle adds no steps
            known = 1 + sum(self.of(inner, value) for inner in self._here(schema))
            known += sum(self.of(inner, part) for inner, part in _below(schema, value))
            self._known[pair] = known
        if known > self._most or len(self._known) > self._most:
            raise TooManySteps
        return known

    def _here(self, schema: dict[str, Any]) -> Iterator[Any]:
        """Yield the inner schemas that apply to the same value."""
        for keyword in _LISTS:
            yield from _list(schema.get(keyword))
        yield from (schema[keyword] for keyword in _SINGLE if keyword in schema)
        for keyword in ("dependentSchemas", "dependencies"):
            yield from _object(schema.get(keyword)).values()
        for keyword in REFERENCES:
            if isinstance(schema.get(keyword), str):
                yield self._referred(schema[keyword])

    def _referred(self, reference: str) -> Any:
        if not reference.startswith("#/"):
            return self._root if reference == "#" else self._anchors.get(reference.removeprefix("#"))
        found = self._root
        for step in unquote(reference[2:]).split("/"):
            if isinstance(found, list):
                found = found[int(step)] if step.isdecimal() and int(step) < len(found) else None
            else:
                found = _object(found).get(step.replace("~1", "/").replace("~0", "~"))
        return found


def _below(schema: dict[str, Any], value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the inner schemas that apply to parts of a value, with the part.

    Each schema for a name pattern is counted for every member.
    """
    if isinstance(value, dict):
        named = _object(schema.get("properties"))
        every = [
            *(schema[keyword] for keyword in _OF_MEMBERS if keyword in schema),
            *_object(schema.get("patternProperties")).values(),
        ]
        for name, part in value.items():
            yield from ((inner, part) for inner in (*every, named.get(name)))
    elif isinstance(value, list):
        every = [inner for keyword in _OF_ITEMS for inner in (schema.get(keyword),) if isinstance(inner, dict)]
        placed = [*_list(schema.get("prefixItems")), *_list(schema.get("items"))]
        for place, part in enumerate(value):
            yield from ((inner, part) for inner in (*every, *placed[place : place + 1]))


def _objects(root: Any) -> Iterator[dict[str, Any]]:
    stack = [root]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            yield one
        stack += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()


def _anchors_of(schema: dict[str, Any]) -> Iterator[str]:
    yield from (schema[name] for name in ("$anchor", "$dynamicAnchor") if isinstance(schema.get(name), str))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
