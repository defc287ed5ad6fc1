"""Convert attribute values to the types that a step's fields have."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from ..core import jsonio
from ..core.wellformed import is_count


class _Refusals(threading.local):
    counts = 0
    """Number of out-of-range counts that :func:`as_int` has rejected on this thread."""


refusals = _Refusals()


def as_int(value: Any) -> int | None:
    """Convert a number or text to a whole token count, or return None if it can't be a count from 0 to 2⁶³ - 1."""
    number: float
    if value.__class__ is int:
        number = value
    elif isinstance(value, bool) or value is None:
        return None
    else:
        try:  # float() has only 16 digits
            number = int(value) if isinstance(value, str) and len(value) < _DIGITS and value.isdecimal() else float(value)
        except (TypeError, ValueError, OverflowError):
            return None
    if is_count(number):
        return int(number)
    refusals.counts += 1
    return None


_DIGITS = 40
"""Texts of this length or more are parsed with ``float()``, which is less precise than ``int()``, but faster for long texts."""


def as_float(value: Any) -> float | None:
    """Convert a number or text to a float. Return None for other values, and for negative or infinite numbers and NaN."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 <= number < float("inf") else None


def as_text(value: Any) -> str | None:
    return value if value.__class__ is str and value else None


def seconds_until(moment: Any, start_ns: int) -> float | None:
    """Return the seconds from a span's start to ``moment`` (ISO 8601 or Unix ms), or None if ``moment`` is invalid or earlier."""
    if moment.__class__ in (int, float):
        return as_float(round(moment / 1_000 - start_ns / 1e9, 6)) if 1e12 < moment < 1e13 else None
    text = as_text(jsonio.loads_or_text(moment)[0]) if moment.__class__ is str else None
    if text is None:
        return None
    try:
        found = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
        return as_float(round(found.timestamp() - start_ns / 1e9, 6))
    except (ValueError, OverflowError, OSError):
        return None


def first_int(values: Mapping[str, Any], names: Iterable[str]) -> int | None:
    return next((count for name in names if (count := as_int(values.get(name))) is not None), None)


def text_under(values: Mapping[str, Any], names: Iterable[str]) -> str | None:
    for name in names:
        value = values.get(name)
        if value.__class__ is str and value:
            return str(value)
    return None


def first_text(value: Any) -> str | None:
    """Return the first text in a list or JSON list, or another text up to the first ``", "``. If there is none, return None."""
    if value.__class__ is str:
        if value[:1] != "[":
            return value.partition(", ")[0] or None
        value, _ = jsonio.loads_or_text(value)
    if isinstance(value, (list, tuple)):
        for item in value:
            if isinstance(item, str) and item:
                return item
    return None
