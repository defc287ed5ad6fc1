"""Reading a judge's reply: scores, verdicts and lists, all by the same rules.

Only what a formula reads is required. A value that is missing, of the wrong type or not in the vocabulary is an error at once
(``invalid_reply``), never a guess; unknown keys are ignored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.errors import MetricError

_NUMBER = re.compile(r"\s*[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\s*")
"""A number in its usual spelling: Python also accepts others, such as ``1_0`` and ``nan``."""
_TRUE = frozenset(("true", "yes", "1", "pass"))
_FALSE = frozenset(("false", "no", "0", "fail"))


def invalid(key: str, wanted: str) -> MetricError:
    """The error of a reply whose ``key`` is not what was ``wanted``."""
    return MetricError("invalid_reply", f"the judge's reply has no usable {key!r}: {wanted} was asked for")


def number(reply: Mapping[str, Any], key: str = "score") -> float:
    """A finite number, also as text."""
    value = reply.get(key)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    readable = _NUMBER.fullmatch(value) is not None if isinstance(value, str) else is_number
    try:
        found = float(value) if readable else math.nan  # type: ignore[arg-type]
    except (ValueError, OverflowError):  # an integer can be larger than any float
        found = math.nan
    if not math.isfinite(found):
        raise invalid(key, "a number")
    return found


def number_within(reply: Mapping[str, Any], low: float, high: float, key: str = "score") -> float:
    """Return a number from ``low`` to ``high``; one outside says that the judge used another scale, and is an error."""
    value = number(reply, key)
    if not low <= value <= high:
        raise invalid(key, f"a number from {low:g} to {high:g}")
    return value


def optional_number(reply: Mapping[str, Any], key: str) -> float | None:
    """A number that no formula reads: None when it is missing or not a number."""
    try:
        return number(reply, key)
    except MetricError:
        return None


def boolean(reply: Mapping[str, Any], key: str) -> bool:
    """A boolean, or one of true/yes/1/pass and false/no/0/fail in any case."""
    found = as_boolean(reply.get(key))
    if found is None:
        raise invalid(key, "true or false")
    return found


def as_boolean(value: Any) -> bool | None:
    """The truth value that is written; None for anything else."""
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return bool(value) if value in (0, 1) else None
    if isinstance(value, str):
        word = value.strip().lower()
        return True if word in _TRUE else False if word in _FALSE else None
    return None


def word(value: Any, vocabulary: Sequence[str], key: str = "verdict") -> str:
    """The word of the vocabulary (in capitals) that a value is, exactly, without regard to case and surrounding spaces."""
    found = value.strip().upper() if isinstance(value, str) else ""
    if found not in vocabulary:
        raise invalid(key, " or ".join(vocabulary))
    return found


def choice(reply: Mapping[str, Any], choices: Sequence[str], key: str = "label") -> str:
    """The choice, as it was configured, that a reply names exactly, without regard to case and surrounding spaces."""
    by_word = {one.strip().upper(): one for one in choices}
    return by_word[word(reply.get(key), list(by_word), key)]


def texts(reply: Mapping[str, Any], key: str) -> list[str]:
    """A list of texts without blank ones; an item that is an object or number counts by its text."""
    found = reply.get(key)
    if not isinstance(found, list):
        raise invalid(key, "a list")
    items = [item if isinstance(item, str) else "" if item is None else str(item) for item in found]
    return [item.strip() for item in items if item.strip()]


def shown(reply: Mapping[str, Any], **keys: str) -> dict[str, Any]:
    """Other parts of the reply, for ``detail``: by our name the value of its key; lists without blank texts, None if absent."""
    found = {name: reply.get(key) for name, key in keys.items()}
    return {
        name: [item for item in value if not isinstance(item, str) or item.strip()] if isinstance(value, list) else value
        for name, value in found.items()
    }


def entries(reply: Mapping[str, Any], key: str = "verdicts") -> list[Any]:
    """A list, whatever is in it."""
    found = reply.get(key)
    if not isinstance(found, list):
        raise invalid(key, "a list")
    return found


def verdict_of(entry: Any) -> Any:
    """The verdict of an entry: its key ``verdict``, or the entry itself when it is a bare word."""
    return entry.get("verdict") if isinstance(entry, Mapping) else entry


def reason_of(entry: Any, key: str = "reason") -> str | None:
    """The reason of a reply or of an entry, if it has one."""
    value = entry.get(key) if isinstance(entry, Mapping) else None
    return value if isinstance(value, str) and value else None


def yes_no(reply: Mapping[str, Any], count: int, key: str = "verdicts") -> list[bool]:
    """One verdict per item, by position: a missing one is no, extra ones are ignored."""
    found = []
    for entry in entries(reply, key)[:count]:
        truth = as_boolean(verdict_of(entry))
        if truth is None:
            raise invalid("verdict", "yes or no")
        found.append(truth)
    return found + [False] * (count - len(found))


def verdicts(reply: Mapping[str, Any], count: int, vocabulary: Sequence[str], missing: str, key: str = "verdicts") -> list[str]:
    """One word of the vocabulary per item, by position: a missing one is ``missing``, extra ones are ignored."""
    found = [word(verdict_of(entry), vocabulary) for entry in entries(reply, key)[:count]]
    return found + [missing] * (count - len(found))


def numbered(items: Sequence[str]) -> str:
    """Items as a judge reads them, so that its verdicts can follow their order."""
    return "\n".join(f"{index}. {item}" for index, item in enumerate(items, 1))
