"""Validate the common part of JSON Schema without the optional validator.

Unsupported keywords are an error, never ignored. So a schema has the same meaning with and without the package.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from ...core.errors import MetricError, MissingExtra
from . import regex
from .schema import Schema
from .values import json_equal

_SHOWN_VIOLATIONS = 10
_DEEPEST_SCHEMA = 50
_ANNOTATIONS = frozenset(
    ("$comment", "default", "deprecated", "description", "examples", "readOnly", "title", "writeOnly"),
)
_DRAFT = re.compile(r"https?://json-schema\.org/(?:draft/(?:2020-12|2019-09)|draft-0[67])/schema#?")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


_TYPES: dict[str, Callable[[Any], bool]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_whole,
    "null": lambda value: value is None,
    "number": _is_number,
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}


def _is_count(value: Any) -> bool:
    return _is_whole(value) and value >= 0


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value) and len(set(value)) == len(value)


def _is_type(value: Any) -> bool:
    return (
        value in _TYPES if isinstance(value, str) else _is_texts(value) and bool(value) and all(item in _TYPES for item in value)
    )


def _is_schema(value: Any) -> bool:
    return isinstance(value, (bool, dict))


_WELL_FORMED: dict[str, Callable[[Any], bool]] = {
    "$schema": lambda value: isinstance(value, str),
    "additionalProperties": _is_schema,
    "const": lambda value: True,
    "enum": lambda value: isinstance(value, list),
    "items": _is_schema,
    "maxItems": _is_count,
    "maxLength": _is_count,
    "maximum": _is_number,
    "minItems": _is_count,
    "minLength": _is_count,
    "minimum": _is_number,
    "pattern": lambda value: isinstance(value, str),
    "properties": lambda value: isinstance(value, dict) and all(map(_is_schema, value.values())),
    "required": _is_texts,
    "type": _is_type,
}
"""Supported keywords, with a check of their values."""


def violations(schema: Schema, instance: Any, *, feature: str) -> list[dict[str, str]]:
    """Return the first ten violations of a schema as ``{path, message}``.

    The list is empty if ``instance`` is valid. Messages don't quote the instance.

    Raises:
        MetricError: If the schema is invalid.
        MissingExtra: If the schema has unsupported keywords, or a ``pattern`` although ``google-re2`` isn't installed.
    """
    _check(schema, feature, 0)
    found = []
    for path, message in _violations(schema, instance, ""):
        found.append({"path": path or "/", "message": message})
        if len(found) == _SHOWN_VIOLATIONS:
            break
    return found


def _check(schema: Any, feature: str, depth: int) -> None:
    if isinstance(schema, bool):
        return
    if depth > _DEEPEST_SCHEMA:
        raise MetricError("invalid_schema", f"invalid JSON Schema: nested more than {_DEEPEST_SCHEMA} levels deep")
    for keyword, value in schema.items():
        well_formed = _WELL_FORMED.get(keyword)
        if well_formed is None:
            if keyword not in _ANNOTATIONS:
                raise MissingExtra(f"{feature}: the keyword {keyword!r}", "structured")
        elif not well_formed(value):
            raise MetricError("invalid_schema", f"invalid JSON Schema: {keyword!r} has an invalid value")
    if "$schema" in schema and not _DRAFT.fullmatch(schema["$schema"]):
        raise MissingExtra(f"{feature}: the draft {schema['$schema']!r}", "structured")
    if "pattern" in schema:
        regex.compiled(schema["pattern"])
    for inner in (*schema.get("properties", {}).values(), schema.get("items", True), schema.get("additionalProperties", True)):
        _check(inner, feature, depth + 1)


def _violations(schema: Any, instance: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(schema, bool):
        if not schema:
            yield path, "nothing is allowed here"
        return
    types = schema.get("type")
    allowed = [types] if isinstance(types, str) else types
    if allowed is not None and not any(_TYPES[name](instance) for name in allowed):
        yield path, f"is not of type {' or '.join(allowed)}"
    if "enum" in schema and not any(json_equal(value, instance) for value in schema["enum"]):
        yield path, "is not one of the enum values"
    if "const" in schema and not json_equal(schema["const"], instance):
        yield path, "is not the const value"
    if isinstance(instance, str):
        yield from _of_text(schema, instance, path)
    elif _is_number(instance):
        yield from _within(schema, instance, "minimum", "maximum", "", path)
    elif isinstance(instance, list):
        yield from _within(schema, len(instance), "minItems", "maxItems", " items", path)
        if "items" in schema:
            for i, item in enumerate(instance):
                yield from _violations(schema["items"], item, f"{path}/{i}")
    elif isinstance(instance, dict):
        yield from _of_object(schema, instance, path)


def _within(schema: dict[str, Any], amount: float, least: str, most: str, of_what: str, path: str) -> Iterator[tuple[str, str]]:
    if amount < schema.get(least, amount):
        yield path, f"is less than {schema[least]}{of_what}"
    if amount > schema.get(most, amount):
        yield path, f"is more than {schema[most]}{of_what}"


def _of_text(schema: dict[str, Any], text: str, path: str) -> Iterator[tuple[str, str]]:
    yield from _within(schema, len(text), "minLength", "maxLength", " characters", path)
    if "pattern" in schema and regex.search(schema["pattern"], text) is None:
        yield path, "does not match the pattern"


def _of_object(schema: dict[str, Any], instance: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for name in schema.get("required", ()):
        if name not in instance:
            yield path, f"{name!r} is a required property"
    properties = schema.get("properties", {})
    further = schema.get("additionalProperties", True)
    for name, value in instance.items():
        if name in properties:
            yield from _violations(properties[name], value, f"{path}/{name}")
        elif further is False:
            yield path, "has an additional property"
        else:
            yield from _violations(further, value, f"{path}/{name}")
