"""Conversion of a reply form in a prompt into the JSON schema that a server enforces.

A form looks like the reply, with a hint for each value: ``{"score": <0 to 100>, "reason": "<why>"}``. The schema allows only
these keys, and a choice of words becomes an enumeration. A form with open parts has no schema.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

from .providers.base import ClosedSchema

_TOKEN = re.compile(r'\s*(?:(?P<text>"(?:[^"\\]|\\.)*")|(?P<hole><[^>]*>)|(?P<mark>[\[\]{}:,])|(?P<more>\.\.\.|…))')
_CHOICE = re.compile(r"<(\w+(?:, \w+)*) or (\w+)>")
_NUMBER = re.compile(r"<(?:-?\d+(?:\.\d+)? to -?\d+(?:\.\d+)?|seconds|(?:whole )?number\b[^>]*)>")
_RANGE = re.compile(r"<(-?\d+(?:\.\d+)?) to (-?\d+(?:\.\d+)?)>")
_TRUTH = re.compile(r"<true (?:or|if)\b[^>]*>")


class _Open(Exception):
    """The form has no closed schema."""


@functools.lru_cache(maxsize=1_000)
def schema_of(form: str) -> Mapping[str, Any] | None:
    """Return a form's schema, or None if the form is unreadable or has open parts."""
    try:
        tokens = _Tokens(form)
        schema = _value(tokens)
    except _Open:
        return None
    return ClosedSchema(schema) if schema.get("type") == "object" else None


@functools.lru_cache(maxsize=1_000)
def hints_of(form: str) -> Mapping[str, str]:
    """Return the keys of a form's object with the beginning of their values, even if the form has open parts."""
    depth, found, last, key = 0, {}, "", None
    for token in _TOKEN.finditer(form):
        mark = token[0].strip()
        if key is not None:
            found[key], key = mark, None
        depth += (mark in "{[") - (mark in "}]")
        if depth == 1 and mark == ":" and last.startswith('"') and "<" not in last:
            key = last[1:-1]
        last = mark
        if depth <= 0:
            break
    return found


@functools.lru_cache(maxsize=1_000)
def ranges_of(form: str) -> Mapping[str, tuple[float, float]]:
    """Return the keys of a form's object whose values are numbers within bounds, with these bounds."""
    found = ((key, _RANGE.fullmatch(hint)) for key, hint in hints_of(form).items())
    return {key: (float(bounds[1]), float(bounds[2])) for key, bounds in found if bounds is not None}


class _Tokens:
    def __init__(self, form: str) -> None:
        self._form = form
        self._at = 0

    def next(self) -> str:
        """Return the next token, or raise :class:`_Open` at the end."""
        found = _TOKEN.match(self._form, self._at)
        if found is None:
            raise _Open
        self._at = found.end()
        return found[0].strip()


def _value(tokens: _Tokens) -> dict[str, Any]:
    word = tokens.next()
    if word == "{":
        return _object(tokens)
    if word == "[":
        return _array(tokens)
    if word.startswith("<"):
        return {"type": "number" if _NUMBER.fullmatch(word) else "boolean" if _TRUTH.fullmatch(word) else "string"}
    if not word.startswith('"'):
        raise _Open
    hole = word[1:-1]
    choice = _CHOICE.fullmatch(hole)
    if choice is not None:
        return {"type": "string", "enum": [*choice[1].split(", "), choice[2]]}
    return {"type": ["string", "null"]} if "null" in hole else {"type": "string"}


def _object(tokens: _Tokens) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    while True:
        key = tokens.next()
        if not key.startswith('"') or "<" in key or tokens.next() != ":":
            raise _Open  # an empty object, or one whose keys the model chooses
        properties[key[1:-1]] = _value(tokens)
        mark = tokens.next()
        if mark == "}":
            return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
        if mark != ",":
            raise _Open


def _array(tokens: _Tokens) -> dict[str, Any]:
    items = _value(tokens)
    while (mark := tokens.next()) != "]":
        if mark not in (",", "...", "…"):
            raise _Open
    return {"type": "array", "items": items}
