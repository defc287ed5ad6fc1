"""Descriptions of metrics for the command line, the page and the documentation."""

from __future__ import annotations

import json
import re
import types
import typing
from typing import Any

from .names import names_of
from .registry import Metric

_SCALE = re.compile(r" \((?:1\.0|1|0) = [^)]*\)\.?$")
_UNITS = {"s": "seconds", "{item}": "count", "{token}": "tokens", "{level}": "level"}
_BOUNDS = (("ge", "≥ "), ("gt", "> "), ("le", "≤ "), ("lt", "< "), ("min_length", "at least "))


def headline(metric: Metric) -> str:
    """Return the summary for a list, without the meaning of the values."""
    return _SCALE.sub(".", metric.summary).replace("``", "")


def type_name(annotation: Any) -> str:
    """Return a parameter's type in words, such as ``float 0..1 or null`` or ``list of str``."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        bounds = {word: getattr(item, key) for item in args[1:] for key, word in _BOUNDS if getattr(item, key, None) is not None}
        if bounds.keys() == {"≥ ", "≤ "}:
            return f"{type_name(args[0])} {bounds['≥ ']}..{bounds['≤ ']}"
        name = f"non-empty {type_name(args[0])}" if bounds.get("at least ") == 1 else type_name(args[0])
        bounds = {word: bound for word, bound in bounds.items() if (word, bound) != ("at least ", 1)}
        return " ".join([name, ", ".join(f"{word}{bound}" for word, bound in bounds.items())]).strip()
    if origin is typing.Literal:
        return " or ".join(json.dumps(arg) for arg in args)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(type_name(arg) for arg in args))
    if origin in (list, tuple, set, frozenset):
        return f"list of {type_name(args[0])}"
    if origin is dict:
        return f"mapping of {type_name(args[1])}"
    if annotation is type(None):
        return "null"
    return "anything" if annotation is Any else getattr(annotation, "__name__", str(annotation))


def value_of(metric: Metric) -> str:
    """Return a metric's unit, better direction and default threshold in one line."""
    if metric.type == "boolean":
        return "1 passes, 0 fails" if metric.direction != "neutral" else "1 or 0 as described below. Neither is a failure"
    unit = "" if metric.unit == "1" else f"{_UNITS.get(metric.unit, metric.unit)}, "
    better = {"up": "higher is better", "down": "lower is better", "neutral": "no better direction"}[metric.direction]
    if metric.threshold is None:
        return f"{unit}{better}"
    return f"{unit}{better}, passes at {metric.threshold:g} or {'below' if metric.direction == 'down' else 'above'}"


def described(metric: Metric) -> dict[str, Any]:
    """Return everything in the catalog about a metric, as data."""
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
