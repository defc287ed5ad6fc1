"""Read scores, verdicts, and lists from judge replies, with the same rules for all metrics.

Missing or invalid required values are ``invalid_reply`` errors. Unknown keys are ignored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from annotated_types import MinLen

from ...core.errors import MetricError
from ..prompts import TEN, Prompts
from ..registry import Asks, Param, Result
from .values import Words

_NUMBER = re.compile(r"\s*[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\s*")
"""Pattern for a number such as ``-1.5e3``. Python's ``float`` also accepts other notations, such as ``1_0`` and ``nan``."""
_TRUE = frozenset(("true", "yes", "1", "pass"))
_FALSE = frozenset(("false", "no", "0", "fail"))


def invalid(key: str, wanted: str) -> MetricError:
    return MetricError("invalid_reply", f"judge's reply: {key!r} is missing or invalid; expected {wanted}")


def number(reply: Mapping[str, Any], key: str = "score") -> float:
    value: Any = reply.get(key)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    try:
        found = float(value) if is_number or (isinstance(value, str) and _NUMBER.fullmatch(value)) else math.nan
    except (ValueError, OverflowError):  # an integer can be larger than any float
        found = math.nan
    if not math.isfinite(found):
        raise invalid(key, "a number")
    return found


def number_within(reply: Mapping[str, Any], low: float, high: float, key: str = "score") -> float:
    value = number(reply, key)
    if not low <= value <= high:
        raise invalid(key, f"a number from {low:g} to {high:g}")
    return value


def optional_number(reply: Mapping[str, Any], key: str) -> float | None:
    try:
        return number(reply, key)
    except MetricError:
        return None


def boolean(reply: Mapping[str, Any], key: str) -> bool:
    if (found := as_boolean(reply.get(key))) is None:
        raise invalid(key, "true or false")
    return found


def as_boolean(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return bool(value) if value in (0, 1) else None
    if isinstance(value, str):
        word = value.strip().lower()
        return True if word in _TRUE else False if word in _FALSE else None
    return None


def word_of(value: Any, vocabulary: Sequence[str], key: str = "verdict") -> str:
    found = value.strip().upper() if isinstance(value, str) else ""
    if found not in vocabulary:
        raise invalid(key, " or ".join(vocabulary))
    return found


def choice(reply: Mapping[str, Any], choices: Sequence[str]) -> str:
    by_word = {one.strip().upper(): one for one in choices}
    return by_word[word_of(reply.get("label"), list(by_word), "label")]


def texts(reply: Mapping[str, Any], key: str) -> list[str]:
    items = [item if isinstance(item, str) else "" if item is None else str(item) for item in entries(reply, key)]
    return [item.strip() for item in items if item.strip()]


def reply_details(reply: Mapping[str, Any], **keys: str) -> dict[str, Any]:
    """Return ``{name: reply[key]}`` for each argument ``name=key``, without blank list items."""
    found = {name: reply.get(key) for name, key in keys.items()}
    return {
        name: [item for item in value if not isinstance(item, str) or item.strip()] if isinstance(value, list) else value
        for name, value in found.items()
    }


def entries(reply: Mapping[str, Any], key: str = "verdicts") -> list[Any]:
    if not isinstance(found := reply.get(key), list):
        raise invalid(key, "a list")
    return found


def verdict_of(entry: Any) -> Any:
    return entry.get("verdict") if isinstance(entry, Mapping) else entry


def reason_of(entry: Any, key: str = "reason") -> str | None:
    value = entry.get(key) if isinstance(entry, Mapping) else None
    return value if isinstance(value, str) and value else None


def yes_no(reply: Mapping[str, Any], count: int) -> list[bool]:
    found = []
    for entry in entries(reply, "verdicts")[:count]:
        if (truth := as_boolean(verdict_of(entry))) is None:
            raise invalid("verdict", "yes or no")
        found.append(truth)
    return found + [False] * (count - len(found))


def verdicts(reply: Mapping[str, Any], count: int, vocabulary: Sequence[str], missing: str) -> list[str]:
    found = [word_of(verdict_of(entry), vocabulary) for entry in entries(reply, "verdicts")[:count]]
    return found + [missing] * (count - len(found))


def scored(reply: Mapping[str, Any], *, top: float = 1, why: str = "reason", **keys: str) -> Result:
    detail = {**reply_details(reply, **keys), why: reason_of(reply, why)}
    return Result(number_within(reply, 0, top) / top, detail=detail, explanation=detail[why])


def judged_true(reply: Mapping[str, Any], key: str) -> Result:
    verdict, reason = boolean(reply, key), reason_of(reply)
    return Result(verdict, detail={key: verdict, "reason": reason}, explanation=reason)


def numbered(items: Iterable[str], first: int = 1) -> str:
    return "\n".join(f"{index}. {item}" for index, item in enumerate(items, first))


# --- G-Eval: a judge writes evaluation steps for a criterion and scores by them

_PROMPTS = Prompts("g_eval")
Criteria = Annotated[Words | Annotated[list[Words], MinLen(1)], Param("value")]


def g_eval(
    judge: Asks,
    criteria: str | Sequence[str],
    steps: Sequence[str] | None,
    what: str,
    material: Mapping[str, Any],
    media: Sequence[str] = (),
) -> Result:
    """Score each criterion from 0 to 10 and return the mean, divided by 10.

    ``what`` describes the material, such as ``a video``. If ``steps`` is None, a judge call writes steps for each criterion.
    """
    given = None if steps is None else [step.strip() for step in steps if step.strip()]
    if given == []:
        raise MetricError("invalid_parameter", "steps: must contain at least one step that isn't blank")
    wanted = [criteria] if isinstance(criteria, str) else list(criteria)
    found: list[dict[str, Any]] = []
    for criterion in wanted:
        by = given
        if by is None:
            task = _PROMPTS["steps"].replace("{what}", what)
            reply = judge.ask("steps", task, {}, '{"steps": ["<step>", ...]}', criteria={"criteria": criterion})
            if not (by := texts(reply, "steps")):
                raise invalid("steps", "at least one step")
        standard = {"criteria": criterion, "evaluation_steps": by}
        reply = judge.ask("score", _PROMPTS["score"].replace("{what}", what), material, TEN, criteria=standard, media=media)
        score, reason = number_within(reply, 0, 10), reason_of(reply)
        if reason is None or not reason.strip():
            raise invalid("reason", "a string that isn't blank")
        found.append({"steps": by, "score": score, "reason": reason})
    value = sum(one["score"] for one in found) / (10 * len(found))
    if len(found) == 1:
        return Result(value, detail=found[0], explanation=found[0]["reason"])
    reasons = "\n".join(one["reason"] for one in found)
    criteria_found = [{"criterion": criterion, **one} for criterion, one in zip(wanted, found, strict=True)]
    return Result(value, detail={"criteria": criteria_found, "reason": reasons}, explanation=reasons)
