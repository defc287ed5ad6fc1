"""How the command line, the page and the documentation describe a metric."""

from __future__ import annotations

import json
import re
import types
import typing
from typing import Any

from .other_tools import names_of
from .registry import Metric

_SCALE = re.compile(r" \((?:1\.0|1|0) = [^)]*\)\.?$")
_BOUNDS = (("ge", "≥ "), ("gt", "> "), ("le", "≤ "), ("lt", "< "), ("min_length", "at least "))


def headline(metric: Metric) -> str:
    """The summary without the meaning of the numbers, for a list."""
    return _SCALE.sub(".", metric.summary).replace("``", "")


def type_name(annotation: Any) -> str:
    """The type of a parameter, for a reader: ``float 0..1 or null``, ``list of str``, ``"mean" or "max"``."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        bounds = {word: getattr(item, key) for item in args[1:] for key, word in _BOUNDS if getattr(item, key, None) is not None}
        if bounds.keys() == {"≥ ", "≤ "}:
            return f"{type_name(args[0])} {bounds['≥ ']}..{bounds['≤ ']}"
        return " ".join([type_name(args[0]), ", ".join(f"{word}{bound}" for word, bound in bounds.items())]).strip()
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
    """The meaning of the numbers of a metric, in a line."""
    if metric.type == "boolean":
        return "1 passes, 0 fails" if metric.direction != "neutral" else "1 found, 0 not found; neither is a failure"
    unit = "" if metric.unit == "1" else f"{metric.unit}, "
    better = {"up": "more is better", "down": "less is better", "neutral": "neither more nor less is better"}[metric.direction]
    if metric.threshold is None:
        return f"{unit}{better}"
    return f"{unit}{better}; passes {'up to' if metric.direction == 'down' else 'from'} {metric.threshold:g}"


def described(metric: Metric) -> dict[str, Any]:
    """All that the catalogue says of a metric, for programs."""
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
