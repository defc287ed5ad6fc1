"""OpenAPI document of the API, built from its routes."""

from __future__ import annotations

from typing import Any

from ..core.finding import SEVERITIES
from ..core.version import __version__
from ..evaluation.turn_facts import CONDITION
from .parameters import MOST_GIVEN, Parameter
from .routes import BASE, ROUTES, Route

_AGO, _EPOCH = r"[0-9]{1,6}[mhd]", r"[0-9]{1,10}(\.[0-9]{1,6})?"
_ISO = r"20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z"
_TYPES: dict[str, dict[str, Any]] = {
    "text": {"type": "string", "minLength": 1, "maxLength": 1_000},
    "number": {"type": "number"},
    "count": {"type": "integer"},
    "time": {"type": "string", "pattern": f"^({_AGO}|{_EPOCH}|{_ISO})$", "examples": ["24h", "2026-11-21T02:57:01Z", "1795000000"]},
    "flag": {"type": "boolean"},
    "condition": {"type": "string", "maxLength": 1_000, "pattern": f"^{CONDITION}$"},
}  # fmt: skip


def _response(description: str, media: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {media: {"schema": schema}}}


_PROBLEM = _response(
    "What is wrong with the request",
    "application/json",
    {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}},
)
_TOO_LONG = _response("The path, query and headers are too long together", "text/plain", {"type": "string"})


def document() -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(BASE + route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "otel-agenteval", "version": __version__, "description": "Turns, their scores and why."},
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}, "basic": {"type": "http", "scheme": "basic"}}
        },
        "security": [{}, {"bearer": []}, {"basic": []}],
    }


def _operation(route: Route) -> dict[str, Any]:
    if any("/" in one for one in route.gives):
        content: dict[str, Any] = {media: {"schema": {"type": "string"}} for media in route.gives}
    else:
        known = {name: schema for name, schema in _RESPONSE_KEYS.items() if name in route.gives}
        content = {"application/json": {"schema": {"type": "object", "required": list(route.gives), "properties": known}}}
    found: dict[str, Any] = {
        "summary": route.about,
        "operationId": f"{route.method.lower()}{route.path.replace('/', '_').replace('{', '').replace('}', '')}",
        "parameters": [_parameter(one, "path") for one in route.in_path] + [_parameter(one, "query") for one in route.query],
        "responses": {
            "200": {"description": "The answer", "content": content},
            **dict.fromkeys(("400", "401", "403", "404", "409", "503"), _PROBLEM),
            "431": _TOO_LONG,
        },
    }
    if route.body is not None:
        schema = {"type": "object", "required": ["turn_id", "label"], "properties": route.body, "additionalProperties": False}
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
        found["responses"] |= {"413": _PROBLEM, "415": _PROBLEM}
    return found


_EXCERPT: dict[str, Any] = {
    "path": {"type": "string", "description": "place in the turn, such as output or tool_calls[0].result"},
    "place": {"type": "string", "description": "the same place for people, with the tool's name"},
    "start": {"type": "integer", "description": "first character in the text at `path`, or in its compact JSON"},
    "end": {"type": "integer"},
    "before": {"type": "string"},
    "found": {"type": "string", "description": "the characters from `start` to `end`, if content is stored and shown"},
    "after": {"type": "string"},
}
_FINDING: dict[str, Any] = {
    "type": "object",
    "required": ["path", "place", "start", "end", "type"],
    "properties": {
        **_EXCERPT,
        "type": {"type": "string"},
        "severity": {"type": "string", "description": ", ".join(SEVERITIES)},
        "compared": {
            "type": "object", "description": "text that the finding was compared with, if content is stored and shown",
            "required": list(_EXCERPT), "properties": _EXCERPT,
        },
    },
}  # fmt: skip
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_FACT = {
    "type": "object",
    "required": ["attribute", "value"],
    "properties": {
        "attribute": {"type": "string"},
        "value": {"type": "string", "description": "text or, if it begins with > or ≤, a range of numbers"},
    },
}
_RESPONSE_KEYS: dict[str, dict[str, Any]] = {
    "scores": {"type": "array", "items": {
        "type": "object", "required": ["metric", "evidence"],
        "properties": {"evidence": {"type": "array", "description": "the findings of a score", "items": _FINDING}},
    }},
    "findings": {"type": "array", "description": "facts that failed turns have more often, the largest difference first", "items": {
        "type": "object", "required": ["facts", "interval", "p_adjusted", "turns", "few", "also", "effect"],
        "properties": {
            "facts": {"type": "array", "items": _FACT, "minItems": 1, "maxItems": 2},
            "failed": {**_SHARE, "description": "share of the failed turns with these facts"},
            "passed": {**_SHARE, "description": "share of the passed turns with these facts"},
            "interval": {"type": "array", "items": {"type": "number"}, "description": "of the difference of the shares"},
            "p_adjusted": {**_SHARE, "description": "p value, corrected for the number of facts"},
            "turns": {"type": "array", "items": {"type": "integer"}, "description": "failed and passed turns with these facts"},
            "few": {"type": "boolean", "description": "true if few failed turns have these facts"},
            "also": {"type": "array", "items": _FACT, "description": "facts of nearly the same turns"},
            "effect": {"type": "boolean", "description": "true if the failure itself can have caused the fact"},
        },
    }},
    "texts": {
        "type": "object", "description": "compact JSON of the values with findings that aren't text, by path",
        "additionalProperties": {"type": "string"},
    },
}  # fmt: skip
"""Schemas of keys of response bodies."""


def _parameter(one: Parameter, where: str) -> dict[str, Any]:
    schema: dict[str, Any] = {**_TYPES[one.kind]}
    if one.choices:
        schema = {"type": "string", "enum": list(one.choices)}
    if one.least is not None:
        schema["minimum"] = one.least
    if one.most is not None:
        schema["maximum"] = one.most
    if one.default is not None:
        schema["default"] = one.default
    if one.many:
        schema = {"type": "array", "items": schema, "minItems": int(one.required), "maxItems": MOST_GIVEN}
    return {"name": one.name, "in": where, "description": one.about, "required": one.required, "schema": schema}
