"""Validate values against a JSON Schema, in limited time and without network access.

With nested references, the number of validation steps can double at each level. Therefore, the steps are counted before validation.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from ...core import jsonio
from ...core.errors import MetricError
from ...core.extras import require
from ...core.forms import misspelled
from .values import word_list

Schema = dict[str, Any] | bool

_SHOWN_VIOLATIONS = 10
_BACKTRACK_LIMIT = 100_000
_STEPS_AT_LEAST, _STEPS_PER_CHARACTER = 200_000, 10
_LARGE = 10_000
_OPEN = -1


def violations(schema: Schema | str, instance: Any, *, feature: str) -> list[dict[str, str]]:
    """Return the first ten violations of a schema as ``{path, message}``, or an empty list.

    Paths and messages can contain keys of the instance, but not its values. ``$schema`` selects the draft (default: 2020-12). The
    schema can be JSON text, or be nested under a key such as ``json_schema``.

    Raises:
        MetricError: If the schema is invalid, has a misspelled keyword, takes too many steps for this value, or refers to another
            document. Other documents are never fetched.
        MissingExtra: If the package ``jsonschema_rs`` isn't installed.
    """
    written = _normalized(schema if isinstance(schema, str) else jsonio.dumps(schema))
    validator = _validator(written, feature)
    if takes_too_many_steps(written, instance):
        problem = "invalid JSON Schema: validating this value takes too many steps; use fewer references"
        raise MetricError("invalid_schema", problem)
    if validator.is_valid(instance):
        return []
    return [
        {"path": "/" + "/".join(map(str, error.instance_path)), "message": error.message}
        for error in itertools.islice(validator.iter_errors(instance), _SHOWN_VIOLATIONS)
    ]


_MAPPINGS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_WRAPPERS = ("json_schema", "schema", "parameters", "input_schema")
"""Keys under which model requests nest the schema, next to keys such as ``name`` and ``strict``."""
_VALUES = frozenset(("const", "enum", "default", "example", "examples"))
_TYPES = frozenset(("string", "number", "integer", "boolean", "array", "object", "null"))


def parsed_schema(schema_text: str) -> Any:
    """Parse a schema, and convert OpenAPI's ``nullable`` and Gemini's upper-case types."""
    pending = [schema := jsonio.loads_exact(schema_text)]
    while pending:
        one = pending.pop()
        pending += (inner for key, inner in one.items() if key not in _VALUES) if isinstance(one, dict) else _list(one)
        if isinstance(kind := _object(one).get("type"), str) and kind.lower() in _TYPES:
            one["type"] = kind.lower()
            if one.get("nullable") is True:
                one["type"] = [kind.lower(), "null"]
                one |= {"enum": [*one["enum"], None]} if isinstance(one.get("enum"), list) else {}
    return schema


@functools.lru_cache(maxsize=256)
def _normalized(schema_text: str) -> str:
    """Return a schema as JSON text, without wrapper keys. Raise MetricError if it is invalid."""
    keywords = tuple(word_list("json_schema"))
    try:
        schema = parsed_schema(schema_text)
    except ValueError:
        schema = None
    for key in _WRAPPERS:
        if isinstance(schema, dict) and isinstance(schema.get(key), dict) and "properties" not in schema:
            schema = schema[key]
    if not isinstance(schema, (dict, bool)) or (isinstance(schema, dict) and schema and set(schema).isdisjoint(keywords)):
        problem = "schema: must be an object with JSON Schema keywords, a boolean, or JSON text of either"
        raise MetricError("invalid_schema", problem)
    _check_keywords(schema, keywords)
    return jsonio.dumps(schema)


def _check_keywords(schema: Any, keywords: tuple[str, ...]) -> None:
    pending: list[tuple[str, Any]] = [("schema", schema)]
    while pending:
        path, one = pending.pop()
        for key, value in _object(one).items():
            if key not in keywords and (close := misspelled(key, keywords)):
                raise MetricError("invalid_schema", f"{path}.{key}: unknown keyword. Did you mean {close!r}?")
            if key in _MAPPINGS:
                pending += ((f"{path}.{key}.{name}", inner) for name, inner in _object(value).items())
            elif key in (*_LISTS, *_SINGLE, *_OF_MEMBERS, *_OF_ITEMS, "prefixItems", "propertyNames"):
                pending += [(f"{path}.{key}", inner) for inner in (_list(value) or [value])]


@functools.lru_cache(maxsize=256)
def _validator(schema_text: str, feature: str) -> Any:
    jsonschema_rs = require("jsonschema_rs", feature=feature, extra="structured")
    try:
        return jsonschema_rs.validator_for(
            jsonio.loads_exact(schema_text),
            retriever=refuse_document,
            mask="value",
            validate_formats=True,
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACK_LIMIT),
        )
    except (ValueError, TypeError) as error:
        raise MetricError("invalid_schema", f"invalid JSON Schema: {str(error).splitlines()[0]}") from None


def refuse_document(uri: str) -> Any:
    """Raise ValueError, so that validators never fetch a referenced document."""
    raise ValueError("a schema must not refer to other documents")


# --- steps of a validation

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("not", "if", "then", "else")
_OF_MEMBERS = ("additionalProperties", "unevaluatedProperties")
_OF_ITEMS = ("items", "additionalItems", "contains", "unevaluatedItems")


class _TooManySteps(Exception):
    pass


def takes_too_many_steps(schema_text: str, instance: Any) -> bool:
    if not _may_double(schema_text):
        return False
    most = _STEPS_AT_LEAST + _STEPS_PER_CHARACTER * len(jsonio.dumps(instance))
    schema = _parsed(schema_text)
    try:
        _StepCount(schema, most).steps(schema, instance)
    except (_TooManySteps, RecursionError):
        return True
    return False


_parsed = functools.lru_cache(maxsize=256)(jsonio.loads)


@functools.lru_cache(maxsize=256)
def _may_double(schema_text: str) -> bool:
    if not any(keyword in schema_text for keyword in _REFERENCES):
        return False
    schema = _parsed(schema_text)
    try:
        return _StepCount(schema, _LARGE).size(schema) > _LARGE
    except (_TooManySteps, RecursionError):
        return True


class _StepCount:
    def __init__(self, root: Any, most: int) -> None:
        self._root = root
        self._most = most
        self._steps: dict[tuple[int, int], int] = {}
        self._sizes: dict[int, int] = {}
        self._anchors: dict[str, Any] = {}
        pending = [root]
        while pending:
            schema = pending.pop()
            names = [_object(schema).get(key) for key in ("$anchor", "$dynamicAnchor")]
            self._anchors |= {name: schema for name in names if isinstance(name, str)}
            pending += schema.values() if isinstance(schema, dict) else _list(schema)

    def size(self, schema: Any) -> int:
        """Count a schema and its subschemas, with references expanded. A cycle raises an error."""
        if not isinstance(schema, dict):
            return sum(map(self.size, _list(schema)))
        if (known := self._sizes.get(id(schema))) is None:
            self._sizes[id(schema)] = _OPEN
            known = 1 + sum(map(self.size, (*schema.values(), *self._references(schema))))
            self._sizes[id(schema)] = known
        if known == _OPEN:
            raise _TooManySteps
        return known

    def steps(self, schema: Any, value: Any) -> int:
        if not isinstance(schema, dict):
            return 1
        pair = id(schema), id(value)
        if (known := self._steps.get(pair)) is None:
            self._steps[pair] = 0  # a cycle adds no steps
            known = self._steps[pair] = 1 + sum(self.steps(inner, part) for inner, part in self._applied(schema, value))
        if known > self._most or len(self._steps) > self._most:
            raise _TooManySteps
        return known

    def _applied(self, schema: dict[str, Any], value: Any) -> Iterator[tuple[Any, Any]]:
        same = [inner for keyword in _LISTS for inner in _list(schema.get(keyword))]
        same += [schema[keyword] for keyword in _SINGLE if keyword in schema]
        same += [inner for keyword in ("dependentSchemas", "dependencies") for inner in _object(schema.get(keyword)).values()]
        yield from ((inner, value) for inner in (*same, *self._references(schema)))
        if isinstance(value, dict):
            named = _object(schema.get("properties"))
            every = [schema[keyword] for keyword in _OF_MEMBERS if keyword in schema]
            every += _object(schema.get("patternProperties")).values()
            for name, part in value.items():
                yield from ((inner, part) for inner in (*every, named.get(name)))
        elif isinstance(value, list):
            every = [schema[keyword] for keyword in _OF_ITEMS if isinstance(schema.get(keyword), dict)]
            positional = [*_list(schema.get("prefixItems")), *_list(schema.get("items"))]
            for place, part in enumerate(value):
                yield from ((inner, part) for inner in (*every, *positional[place : place + 1]))

    def _references(self, schema: dict[str, Any]) -> Iterator[Any]:
        return (self._target(schema[key]) for key in _REFERENCES if isinstance(schema.get(key), str))

    def _target(self, reference: str) -> Any:
        if not reference.startswith("#/"):
            return self._root if reference == "#" else self._anchors.get(reference.removeprefix("#"))
        found = self._root
        for step in unquote(reference[2:]).split("/"):
            if isinstance(found, list):
                found = found[int(step)] if step.isdecimal() and int(step) < len(found) else None
            else:
                found = _object(found).get(step.replace("~1", "/").replace("~0", "~"))
        return found


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
