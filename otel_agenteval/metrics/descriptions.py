"""Descriptions of metrics for the command line, the web page, and the documentation."""

from __future__ import annotations

import json
import math
import re
import types
import typing
from collections.abc import Iterator, Sequence
from typing import Any

from .names import names_of
from .registry import Metric

_SCALE = re.compile(r" \((?:1\.0|1|0) = [^)]*\)\.?$")
_UNITS = {"s": "seconds", "{item}": "number", "{token}": "tokens", "{level}": "level"}
_LEVELS = {"safety_policy": "0..7", "risk_autonomy": "1..10"}
_BOUNDS = (("ge", "≥ "), ("gt", "> "), ("le", "≤ "), ("lt", "< "), ("min_length", "non-empty"))
_CHOICE = (typing.Literal, typing.Union, types.UnionType)
_NAMES = {
    "str": "string", "float": "number", "int": "integer", "bool": "boolean", "Any": "any value", "NoneType": "null",
    "dict": "mapping", "BoundMetric": "metric", "Oracle": "function",
}  # fmt: skip


def headline(metric: Metric) -> str:
    """Return a metric's one-line summary. A scale in parentheses, such as ``(1.0 = new, 0.0 = repeated)``, is removed."""
    return _SCALE.sub(".", metric.summary).replace("``", "")


def type_name(annotation: Any, s: str = "") -> str:
    """Return a parameter's type in words, such as ``number 0..1 or null``. If ``s`` is ``"s"``, return the plural.

    If the metadata of ``Annotated`` contains a string, return this string.
    """
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        written = next((item for item in args[1:] if isinstance(item, str)), None)
        return written or _bounded(type_name(args[0], s), args[1:], s)
    if origin in _CHOICE:
        return _joined(sorted(dict.fromkeys(_choices(annotation, s)), key=lambda choice: (choice == "null", " of " in choice)))
    if origin in (list, tuple, set, frozenset, Sequence):
        count = f"{len(args)} " if origin is tuple and args[-1] is not ... else ""
        return f"list{s}" if args[0] is Any else f"list{s} of {count}{type_name(args[0], 's')}"
    if origin is dict:
        return f"mapping{s}" if s or args[1] is Any else f"mapping of names to {type_name(args[1], 's')}"
    name = getattr(annotation, "__name__", str(annotation))
    return _NAMES.get(name, re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()) + s


def _bounded(name: str, metadata: Sequence[Any], s: str) -> str:
    found = [(word, getattr(item, key, None)) for item in metadata for key, word in _BOUNDS]
    bounds = {word: bound for word, bound in found if bound not in (None, math.inf, -math.inf)}
    if bounds.keys() == {"≥ ", "≤ "}:
        return f"{name} {bounds['≥ ']}..{bounds['≤ ']}"
    name = f"non-empty {name}" if bounds.pop("non-empty", 0) and not s else name
    return " ".join(filter(None, (name, " and ".join(f"{word}{bound}" for word, bound in bounds.items()))))


def _joined(choices: Sequence[str]) -> str:
    *first, last = choices
    comma = "," if any(" of " in choice for choice in (choices if len(first) > 1 else first)) else ""
    return ", ".join(first) + f"{comma} or {last}" if first else last


def _choices(annotation: Any, s: str) -> Iterator[str]:
    args = typing.get_args(annotation)
    for arg in args:
        if typing.get_origin(arg) in _CHOICE:
            yield from _choices(arg, s)
        elif arg is not int or float not in args:
            yield json.dumps(arg) if typing.get_origin(annotation) is typing.Literal else type_name(arg, s)


def value_of(metric: Metric) -> str:
    """Return a metric's unit, preferred direction, and default threshold in one line."""
    if metric.type == "boolean":
        return "1 passes, 0 fails" if metric.direction != "neutral" else "1 or 0, as described below. Neither value is a failure"
    levels = _LEVELS.get(metric.family) if metric.unit == "{level}" else None
    unit = "" if metric.unit == "1" else f"{levels or _UNITS.get(metric.unit, metric.unit)}, "
    better = {"up": "higher is better", "down": "lower is better", "neutral": "neither high nor low is better"}[metric.direction]
    if metric.threshold is None:
        return f"{unit.replace(', ', '. ')}{better.capitalize()}" if metric.direction == "neutral" and unit else f"{unit}{better}"
    own = metric.parameters.get("threshold")
    if own is not None and own.default is not None:  # the threshold applies to something other than the value
        return f"{unit}{better}. The option threshold determines the verdict"
    if metric.threshold == (0 if metric.direction == "down" else 1) and (metric.unit == "1" or metric.direction == "down"):
        return f"{unit}{better}, passes only at {metric.threshold:g}"
    return f"{unit}{better}, passes at {metric.threshold:g} or {'below' if metric.direction == 'down' else 'above'}"


def described(metric: Metric) -> dict[str, Any]:
    parameters = {
        p.name: {"type": type_name(p.annotation), **({"required": True} if p.required else {"default": p.default})}
        for p in metric.parameters.values()
    }
    return {
        "name": metric.name, "kind": metric.kind, "family": metric.family, "type": metric.type, "unit": metric.unit,
        "direction": metric.direction, "threshold": metric.threshold, "version": metric.version, "needs": list(metric.needs),
        "uses": list(metric.uses), "references": list(metric.references), "applies_to": metric.applies_to, "parameters": parameters, "aliases": list(metric.aliases), "other_tools": names_of(metric.name), "inline": metric.inline, "heavy": metric.heavy, "extra": metric.extra, "summary": metric.summary,
        "doc": metric.doc,
    }  # fmt: skip
